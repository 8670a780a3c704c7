package redis

import (
	"bufio"
	"strings"
	"testing"
)

func TestReply(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n": "OK", ":7\r\n": "7", "$2\r\nab\r\n": "ab", "$-1\r\n": "", "*-1\r\n": "", "*0\r\n": "",
		"*3\r\n$1\r\na\r\n:2\r\n*1\r\n$1\r\nb\r\n": "a\n2\nb",
	} {
		if got, err := reply(bufio.NewReader(strings.NewReader(text))); err != nil || got != want {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\r\n", "-ERR no\r\n", "$x\r\n", "$5\r\nab", "*2\r\n+a\r\n", "%1\r\n", "?"} {
		if got, err := reply(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q gives %q", text, got)
		}
	}
}
