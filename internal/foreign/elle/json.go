package elle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"stroppy/internal/foreign"
)

// jsonReader reads a sequence of JSON values with their lines.
type jsonReader struct {
	*json.Decoder
	data []byte
	seen int64 // bytes whose lines are counted
	line int
}

func newJSONReader(data []byte) *jsonReader {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return &jsonReader{Decoder: d, data: data, line: 1}
}

// here returns the line of the next token.
func (r *jsonReader) here() int {
	offset := r.InputOffset()
	for offset < int64(len(r.data)) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[offset]) >= 0 {
		offset++
	}
	if offset > r.seen {
		r.line += bytes.Count(r.data[r.seen:offset], []byte{'\n'})
		r.seen = offset
	}
	return r.line
}

// next reads a value. It returns false at the end of the data.
func (r *jsonReader) next() (value, bool, error) {
	line := r.here()
	token, err := r.Token()
	if errors.Is(err, io.EOF) {
		return value{}, false, nil
	}
	if err != nil {
		return value{}, false, r.wrong(line, err)
	}
	v, err := r.value(token, line, 0)
	return v, err == nil, err
}

// wrong returns the error of a value that begins in a line.
func (r *jsonReader) wrong(began int, err error) error {
	var input *foreign.InputError
	switch {
	case errors.As(err, &input):
		return err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return &foreign.InputError{Line: began, What: "what begins here has no end: the file is cut off"}
	}
	return &foreign.InputError{Line: r.here(), What: "it is no JSON: " + err.Error()}
}

// value reads the rest of a value that begins with a token.
func (r *jsonReader) value(token json.Token, line, depth int) (value, error) {
	if depth > deepest {
		return value{}, &foreign.InputError{Line: line, What: fmt.Sprintf("values are nested more than %d deep", deepest)}
	}
	switch t := token.(type) {
	case string:
		return value{kind: keyword, text: t, line: line}, nil
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return value{kind: number, n: n, line: line}, nil
		}
		return value{kind: word, text: t.String(), line: line}, nil
	case json.Delim:
		return r.items(t, line, depth)
	case nil:
		return value{line: line}, nil
	}
	return value{kind: word, text: fmt.Sprint(token), line: line}, nil
}

// items reads an array or an object.
func (r *jsonReader) items(opening json.Delim, line, depth int) (value, error) {
	v := value{kind: vector, line: line}
	if opening == '{' {
		v.kind = mapping
	}
	for {
		at := r.here()
		token, err := r.Token()
		if err != nil {
			return v, r.wrong(line, err)
		}
		if token == json.Delim(']') || token == json.Delim('}') {
			return v, nil
		}
		item, err := r.value(token, at, depth+1)
		if err != nil {
			return v, err
		}
		v.list = append(v.list, item)
	}
}
