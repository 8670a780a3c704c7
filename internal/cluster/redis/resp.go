package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// command writes a command as much of the protocol, version 2, as is spoken here:
// https://redis.io/docs/latest/develop/reference/protocol-spec/.
func command(to *strings.Builder, words ...string) {
	fmt.Fprintf(to, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(to, "$%d\r\n%s\r\n", len(word), word)
	}
}

// reply reads one reply; an error reply is a refusal.
func reply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return "", errors.New("the server answered an empty line")
	}
	rest := line[1:]
	switch line[0] {
	case '+', ':':
		return rest, nil
	case '-':
		return "", refusal(rest)
	}
	size, err := strconv.Atoi(rest)
	switch {
	case err != nil:
		return "", fmt.Errorf("the server answered %q, which is no reply of Redis", line)
	case size < 0:
		return "", nil
	case line[0] == '$':
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(r, text); err != nil {
			return "", err
		}
		return string(text[:size]), nil
	case line[0] == '*':
		elements := make([]string, size)
		for i := range elements {
			if elements[i], err = reply(r); err != nil {
				return "", err
			}
		}
		return strings.Join(elements, "\n"), nil
	}
	return "", fmt.Errorf("the server answered %q, which is no reply of Redis 2", line)
}
