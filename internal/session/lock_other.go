//go:build !unix

package session

// LockDirectory does nothing on systems without locks that end with their process.
func LockDirectory(string) (unlock func(), err error) { return func() {}, nil }
