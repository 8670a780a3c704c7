package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// ask sends one command over a connection of its own and returns the reply as
// text. It speaks as much of the protocol, version 2, as that takes:
// https://redis.io/docs/latest/develop/reference/protocol-spec/.
func ask(ctx context.Context, address, password string, words []string) (string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer abandon(conn)
	r := bufio.NewReader(conn)
	if password != "" {
		if _, err := converse(ctx, conn, r, []string{"AUTH", password}); err != nil {
			return "", fmt.Errorf("ask %s for the right to ask: %w", address, err)
		}
	}
	text, err := converse(ctx, conn, r, words)
	if err != nil {
		return "", fmt.Errorf("%s on %s: %w", strings.Join(words, " "), address, err)
	}
	return text, nil
}

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

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
