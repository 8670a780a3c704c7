package address

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var style = Style{Product: "Bank", Server: "teller", Port: "77", Form: "bank://HOST:PORT"}

func TestServerWithoutPortGetsDefaultPort(t *testing.T) {
	for list, want := range map[string][]string{
		"h1":                  {"h1:77"},
		"h1,h2:1,10.0.0.3":    {"h1:77", "h2:1", "10.0.0.3:77"},
		"[::1],[::2]:7,[::3]": {"[::1]:77", "[::2]:7", "[::3]:77"},
	} {
		if got, err := style.servers(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s gives %v, %v", list, got, err)
		}
	}
	for list, says := range map[string]string{
		"": "no host: write bank://", "h1,": "no host", "h1,h1:77": "the teller h1:77 is named twice", "h1:0": "port of the teller",
		"h1:http": "port", "::1": "brackets", "h1/db": "no host", "a b": "no host", "h1:1:2": "brackets",
	} {
		_, err := style.servers(list)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "read the Bank URL: ") {
			t.Errorf("%q gives %v, which does not say %q", list, err, says)
		}
	}
}

func TestUserAndPasswordAreUnescaped(t *testing.T) {
	for text, want := range map[string]URL{
		"u:p%40%3A@h1,h2": {true, "u", "p@:", []string{"h1:77", "h2:77"}, ""},
		":p@@h/d/e":       {true, "", "p@", []string{"h:77"}, "d/e"},
		"u@h/":            {true, "u", "", []string{"h:77"}, ""},
		"@h":              {true, "", "", []string{"h:77"}, ""},
		"u:a:b@h":         {true, "u", "a:b", []string{"h:77"}, ""},
		"h":               {false, "", "", []string{"h:77"}, ""},
	} {
		if got, err := style.Parse(text, nil); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s gives %+v, %v", text, got, err)
		}
	}
	_, err := style.Parse("u:secr%et@h", nil)
	if err == nil || !strings.Contains(err.Error(), "%25") || strings.Contains(err.Error(), "secr") {
		t.Errorf("a bad escape gives %v", err)
	}
}

func TestUnescapedCharactersAreDetected(t *testing.T) {
	for text, want := range map[string]bool{
		"h": false, "u:p@h": false, "u:p@h/d?a=b": false, "u:p@@h": false, "u:p@h/d?a=%40": false, "h/": false,
		"u:p/w@h": true, "u:p?w@h": true, "u:p#w@h": true, "h/d@": true, "h?a=@": true, "u:p@h/d?a=b@c": true,
	} {
		_, err := style.Parse(text, Options{"a": Text(new(string))})
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

func TestURLOptionsAreParsedAndValidated(t *testing.T) {
	got := struct {
		text, word string
		time       time.Duration
		yes        bool
		number     uint64
		share      float64
	}{time: 7}
	options := Options{
		"text": Text(&got.text), "word": Word(&got.word, "on", "off"), "time": Time(&got.time, time.Millisecond),
		"choice": Choice(&got.yes, "no", "yes"), "number": Number(&got.number, "number of things", 2, math.MaxUint64), "share": Share(&got.share),
	}
	if err := style.Read("", options); err != nil || got.time != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := style.Read("text=a%26b&word=OFF&time=1h&choice=yes&number=18446744073709551615&share=1", options); err != nil ||
		got.text != "a&b" || got.word != "off" || got.time != time.Hour || !got.yes || got.number != math.MaxUint64 || got.share != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := style.Read("choice=no&time=1ms", options); err != nil || got.yes || got.time != time.Millisecond {
		t.Errorf("%+v, %v", got, err)
	}
	for query, says := range map[string]string{
		"sslmode=1": "no parameter is called \"sslmode\": the known ones are choice, number, share, text, time, word",
		"txet=1":    "the nearest is text, and the known ones are choice, number, share, text, time, word", "text=1&text=2": "2 times", "%zz": "malformed",
		"choice=": "neither no, the default, nor yes", "word=of": "take one of on, off",
		"number=1": "is no number of things from 2 to 18446744073709551615", "number=-2": "number of things", "number=18446744073709551616": "number of things",
		"share=2": "from 0 to 1", "share=NaN": "from 0 to 1", "share=-1": "from 0 to 1", "share=x": "from 0 to 1",
		"time=": "no time", "time=0s": "no time", "time=-1s": "no time", "time=999us": "no time", "time=61m": "no time", "time=3": "no time",
	} {
		if err := style.Read(query, options); err == nil || !strings.Contains(err.Error(), says) || got.time != time.Millisecond {
			t.Errorf("%s gives %v, which does not say %q", query, err, says)
		}
	}
}
