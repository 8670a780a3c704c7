package workers

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// TestProcessWithoutTokenCannotJoin checks that a process without the token is refused without delaying others,
// and that a worker refuses other programs.
func TestProcessWithoutTokenCannotJoin(t *testing.T) {
	token := NewToken()
	ours, err := identityOf(token)
	if err != nil {
		t.Fatal(err)
	}
	again, err := identityOf(token) // of another process
	if err != nil {
		t.Fatal(err)
	}
	other, err := identityOf(NewToken())
	if err != nil {
		t.Fatal(err)
	}
	forged := *again // it knows the coordinator, and has not the token
	forged.proof = other.proof
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	admitted := make(chan error)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c, err := ours.admit(conn)
			if err == nil {
				_ = c.Close()
			}
			admitted <- err
		}
	}()
	for name, c := range map[string]struct {
		who      *identity
		joins    bool
		admitted bool
	}{"ours": {again, true, true}, "another run's": {other, false, false}, "without the token": {&forged, true, false}} {
		ch, err := c.who.join(t.Context(), l.Addr().String())
		if (err == nil) != c.joins || name == "another run's" && !errors.Is(err, errOther) {
			t.Errorf("%s: joined with %v", name, err)
		}
		if err := <-admitted; (err == nil) != c.admitted {
			t.Errorf("%s: admitted with %v", name, err)
		}
		if ch != nil {
			_ = ch.Close()
		}
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
	if err := <-admitted; err == nil {
		t.Error("a browser is admitted")
	}
	_ = conn.Close()
}

// TestInvalidTokensAreRefused checks that tokens are refused if they are too short, too long or contain invalid
// characters.
func TestInvalidTokensAreRefused(t *testing.T) {
	for token, want := range map[string]string{"": "empty", "abc": "3 characters", strings.Repeat("a", 2000): "2000 characters", strings.Repeat("a b", 20): "spaces", strings.Repeat("é", 20): "letters"} {
		if err := CheckToken(token); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q…: %v", token, err)
		}
	}
	if err := CheckToken(NewToken()); err != nil {
		t.Error(err)
	}
}
