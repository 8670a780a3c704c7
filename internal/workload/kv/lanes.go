package kv

// lanes are the sessions of the connection that was opened last which no client has
// yet.
type lanes[Session any] struct{ left []Session }

// next returns a session for the next client: a lane that is left, or the first of
// those of a new connection.
func (l *lanes[Session]) next(open func() ([]Session, error)) (s Session, err error) {
	if len(l.left) == 0 {
		if l.left, err = open(); err != nil {
			return s, err
		}
	}
	s, l.left = l.left[0], l.left[1:]
	return s, nil
}
