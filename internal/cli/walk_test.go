package cli_test

import "io/fs"

// walk calls f with every file of a tree.
func walk(root fs.FS, f func(path string, data []byte)) error {
	return fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		if err == nil {
			f(path, data)
		}
		return err
	})
}
