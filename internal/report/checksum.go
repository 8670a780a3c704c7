package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// noChecksum stands where the checksum of a result belongs until it is known.
const noChecksum = "0000000000000000000000000000000000000000000000000000000000000000"

// checksumKey finds the checksum in a result as compact JSON. It is the last key.
var checksumKey = regexp.MustCompile(`"checksum":"([0-9a-f]*)"}$`)

// checksumOf returns the checksum that a result says it has, and the one that it has. Both are
// empty if it says none.
func checksumOf(result []byte) (stated, real string, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, result); err != nil {
		return "", "", err
	}
	text := bytes.TrimSpace(compact.Bytes())
	at := checksumKey.FindSubmatchIndex(text)
	if at == nil {
		return "", "", nil
	}
	stated = string(text[at[2]:at[3]])
	if stated == "" {
		return "", "", nil
	}
	return stated, fmt.Sprintf("%x", sha256.Sum256(append(text[:at[2]:at[2]], text[at[3]:]...))), nil
}

// verifyChecksum returns an error if a result is not as it was written.
func verifyChecksum(result []byte) error {
	stated, real, err := checksumOf(result)
	if err == nil && stated != real {
		err = errors.New("it was altered or damaged since it was written: its checksum is wrong")
	}
	return err
}
