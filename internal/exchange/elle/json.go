package elle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"stroppy/internal/exchange"
)

// jsonReader reads values of JSON, one after another.
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

// here returns the line of the next value.
func (r *jsonReader) here() int {
	offset := r.InputOffset()
	for offset < int64(len(r.data)) && bytes.IndexByte([]byte(" \t\r\n,"), r.data[offset]) >= 0 {
		offset++
	}
	if offset > r.seen {
		r.line += bytes.Count(r.data[r.seen:offset], []byte{'\n'})
		r.seen = offset
	}
	return r.line
}

// next reads a value; false is the end of the data.
func (r *jsonReader) next() (value, bool, error) {
	line := r.here()
	var v any
	err := r.Decode(&v)
	switch {
	case errors.Is(err, io.EOF):
		return value{}, false, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return value{}, false, &exchange.InputError{Line: line, What: "what begins here has no end: the file is cut off"}
	case err != nil:
		return value{}, false, &exchange.InputError{Line: line, What: "it is no JSON: " + err.Error()}
	}
	return fromJSON(v, line), true, nil
}

// fromJSON turns a decoded value into one of ours.
func fromJSON(v any, line int) value {
	switch v := v.(type) {
	case string:
		return value{kind: keyword, text: v, line: line}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return value{kind: number, n: n, line: line}
		}
		return value{kind: word, text: v.String(), line: line}
	case []any:
		list := value{kind: vector, line: line}
		for _, e := range v {
			list.list = append(list.list, fromJSON(e, line))
		}
		return list
	case map[string]any:
		m := value{kind: mapping, line: line}
		var keys []string
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			m.list = append(m.list, value{kind: keyword, text: k, line: line}, fromJSON(v[k], line))
		}
		return m
	case nil:
		return value{line: line}
	}
	return value{kind: word, text: fmt.Sprint(v), line: line}
}
