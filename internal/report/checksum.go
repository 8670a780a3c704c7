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

// checksumKey finds the checksum in a result as compact JSON, whose last key it is, even if its
// name or its value was altered.
var checksumKey = regexp.MustCompile(`"(?:checksum":"([^"]*)|[^"]*":"([0-9a-f]{64}))"}$`)

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
	from, to := max(at[2], at[4]), max(at[3], at[5])
	stated = string(text[from:to])
	return stated, fmt.Sprintf("%x", sha256.Sum256(append(text[:from:from], text[to:]...))), nil
}

// verifyChecksum returns an error if a result is not as it was written.
func verifyChecksum(result []byte) error {
	stated, real, err := checksumOf(result)
	if err == nil && stated != real {
		err = errors.New("it was altered or damaged since it was written: its checksum is wrong")
	}
	return err
}
