package address

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

var style = Style{Product: "Bank", Server: "teller", Port: "77", Form: "bank://HOST:PORT"}

func TestServers(t *testing.T) {
	for list, want := range map[string][]string{
		"h1":                  {"h1:77"},
		"h1,h2:1,10.0.0.3":    {"h1:77", "h2:1", "10.0.0.3:77"},
		"[::1],[::2]:7,[::3]": {"[::1]:77", "[::2]:7", "[::3]:77"},
	} {
		if got, err := style.Servers(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s gives %v, %v", list, got, err)
		}
	}
	for list, says := range map[string]string{
		"": "no host: write bank://", "h1,": "no host", "h1,h1:77": "the teller h1:77 is named twice", "h1:0": "port of the teller",
		"h1:http": "port", "::1": "brackets", "h1/db": "no host", "a b": "no host", "h1:1:2": "brackets",
	} {
		_, err := style.Servers(list)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "read the Bank URL: ") {
			t.Errorf("%q gives %v, which does not say %q", list, err, says)
		}
	}
}

func TestAuthority(t *testing.T) {
	for text, want := range map[string][3]string{
		"u:p%40%3A@h1,h2": {"u", "p@:", "h1,h2"}, ":p@@h": {"", "p@", "h"}, "u@h": {"u", "", "h"}, "@h": {"", "", "h"}, "u:a:b@h": {"u", "a:b", "h"},
	} {
		user, password, rest, err := style.Authority(text)
		if got := [3]string{user, password, rest}; err != nil || got != want {
			t.Errorf("%s gives %q, %v", text, got, err)
		}
	}
	_, _, _, err := style.Authority("u:secr%et@h")
	if err == nil || !strings.Contains(err.Error(), "%25") || strings.Contains(err.Error(), "secr") {
		t.Errorf("a bad escape gives %v", err)
	}
}

func TestUnescaped(t *testing.T) {
	for text, want := range map[string]bool{
		"h": false, "u:p@h": false, "u:p@h/d?a=b": false, "u:p@@h": false, "u:p@h/d?a=%40": false, "": false,
		"u:p/w@h": true, "u:p?w@h": true, "u:p#w@h": true, "h/d@": true, "h?a=@": true, "u:p@h/d?a=b@c": true,
	} {
		err := style.Whole(text)
		if Unescaped(text) != want || (err != nil) != want {
			t.Errorf("%s: %v, %v", text, Unescaped(text), err)
		}
		if err == nil {
			continue
		}
		if unescaped := new(UnescapedError); !errors.As(err, &unescaped) || !strings.Contains(err.Error(), style.Form) || !strings.Contains(err.Error(), "%2F") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParameters(t *testing.T) {
	known := []string{"a", "b"}
	if values, err := style.Parameters("a=1&b=", known); err != nil || values.Get("a") != "1" || !values.Has("b") {
		t.Errorf("%v, %v", values, err)
	}
	for query, says := range map[string]string{"c=1": "known ones are a, b", "a=1&a=2": "2 times", "%zz": "malformed"} {
		if _, err := style.Parameters(query, known); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s gives %v", query, err)
		}
	}
}

func TestDuration(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 7, "1ms": time.Millisecond, "1h": time.Hour} {
		values, got := url.Values{}, time.Duration(7)
		if value != "" {
			values.Set("t", value)
		}
		if err := style.Duration(values, "t", time.Millisecond, &got); err != nil || got != want {
			t.Errorf("%q gives %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "0s", "-1s", "999us", "61m", "3"} {
		got := time.Duration(7)
		if err := style.Duration(url.Values{"t": {value}}, "t", time.Millisecond, &got); err == nil || got != 7 {
			t.Errorf("%q gives %v, %v", value, got, err)
		}
	}
}
