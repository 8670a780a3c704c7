package elle

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"stroppy/internal/foreign"
)

// checkJSON returns an error if data is not a sequence of JSON values. The reader of EDN accepts more, such as a
// missing comma. A value that is cut off is no error here, because the reader reports where it began.
func checkJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var value json.RawMessage
		err := d.Decode(&value)
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case errors.As(err, &syntax):
			before := min(max(syntax.Offset-1, 0), int64(len(data)))
			return &foreign.InputError{Line: 1 + bytes.Count(data[:before], []byte{'\n'}), What: "it is no JSON: " + err.Error()}
		case err != nil:
			return err
		}
	}
}
