package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ManifestFile is the file in a history's folder that lists the other files.
const ManifestFile = "manifest.json"

// manifest lists the files of a recording at its completion. It detects a file that was removed, or replaced
// by another valid file.
type manifest struct {
	Identity Identity         `json:"identity"`
	Files    map[string]entry `json:"files"`    // by name
	Checksum uint32           `json:"checksum"` // of the compact JSON of this value with checksum 0
}

// entry is the footer of a file of blocks. For any other file, it is the checksum of all bytes.
type entry struct {
	Blocks   uint64 `json:"blocks,omitempty"`
	Records  uint64 `json:"records,omitempty"`
	Checksum uint32 `json:"checksum"`
}

func (s sums) entry() entry { return entry{s.Blocks, s.Records, s.Running} }

// sum returns the checksum of the manifest.
func (m manifest) sum() uint32 {
	m.Checksum = 0
	text, _ := json.Marshal(m) // cannot fail for these types
	return checksum(text)
}

// text returns the bytes of the file.
func (m *manifest) text() []byte {
	text, _ := json.MarshalIndent(m, "", "  ") // cannot fail for these types
	return append(text, '\n')
}

// list adds files to the manifest in dir, and creates it if necessary.
func list(dir string, files map[string]entry) error {
	path := filepath.Join(dir, ManifestFile)
	id, err := IdentityIn(dir)
	if err != nil {
		return err
	}
	m, err := readManifest(dir, id)
	if err != nil {
		return err
	}
	if m == nil {
		m = &manifest{Identity: id, Files: map[string]entry{}}
	}
	for name, e := range files {
		m.Files[name] = e
	}
	m.Checksum = m.sum()
	if err = os.WriteFile(path+partSuffix, m.text(), 0o644); err == nil {
		err = os.Rename(path+partSuffix, path)
	}
	if err != nil {
		return explain(recording, path, err)
	}
	return nil
}

// readManifest returns the manifest of a run in dir, or nil if there is none. A manifest of another run is an
// error.
func readManifest(dir string, run Identity) (*manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m := new(manifest)
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	if err == nil && (m.Checksum != m.sum() || !bytes.Equal(text, m.text())) {
		err = errors.New("its checksum is wrong")
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of the recording's files in %s: %w: restore it from a copy", path, err)
	}
	if m.Identity != run {
		return nil, fmt.Errorf("read the list of the recording's files in %s: it belongs to %s, but the history in the same directory belongs to %s: "+
			"put the files of one run together", path, m.Identity, run)
	}
	return m, nil
}
