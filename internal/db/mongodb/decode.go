package mongodb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"stroppy/internal/db"
)

// decode appends the values of a document, whose texts refer to raw.
func decode(values []db.Value, of *db.Collection, raw []byte) ([]db.Value, error) {
	start := len(values)
	for range of.Width() {
		values = append(values, db.Value{Null: true})
	}
	own := values[start:]
	var list []byte
	err := each(raw, func(name []byte, kind bsoncore.Type, data []byte) error {
		if of.List != "" && string(name) == of.List {
			if kind != bsoncore.TypeArray {
				return unreadable(of, name, kind)
			}
			list = data
			return nil
		}
		for place := range own {
			if f := field(of, place); f.Name == string(name) {
				return read(&own[place], of, f, kind, data)
			}
		}
		return fmt.Errorf("a document of %s has a field %q, which this program does not write", of.Name, name)
	})
	if err != nil || list == nil {
		return values, err
	}
	err = each(list, func(name []byte, kind bsoncore.Type, data []byte) error {
		if kind != bsoncore.TypeEmbeddedDocument {
			return unreadable(of, name, kind)
		}
		from := len(values)
		for range of.Items {
			values = append(values, db.Value{Null: true})
		}
		own := values[from:]
		return each(data, func(name []byte, kind bsoncore.Type, data []byte) error {
			for i, f := range of.Items {
				if f.Name == string(name) {
					return read(&own[i], of, f, kind, data)
				}
			}
			return fmt.Errorf("a document of %s has a field %s.%q, which this program does not write", of.Name, of.List, name)
		})
	})
	return values, err
}

// read reads a value of the type of its field.
func read(v *db.Value, of *db.Collection, f db.Field, kind bsoncore.Type, data []byte) error {
	ok := true
	switch {
	case kind == bsoncore.TypeNull:
		return nil
	case f.Type == db.Text && kind == bsoncore.TypeString:
		v.Text = data[4 : len(data)-1]
	case f.Type == db.Decimal && kind == bsoncore.TypeDecimal128:
		v.Int, ok = centsOf(binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data))
	case f.Type == db.Integer:
		v.Int, ok = integerOf(kind, data)
	default:
		ok = false
	}
	if !ok {
		return unreadable(of, []byte(f.Name), kind)
	}
	v.Null = false
	return nil
}

// integerOf reads a whole number of any BSON type.
func integerOf(kind bsoncore.Type, data []byte) (int64, bool) {
	switch kind {
	case bsoncore.TypeInt64:
		return int64(binary.LittleEndian.Uint64(data)), true
	case bsoncore.TypeInt32:
		return int64(int32(binary.LittleEndian.Uint32(data))), true
	case bsoncore.TypeDouble:
		f := math.Float64frombits(binary.LittleEndian.Uint64(data))
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	return 0, false
}

func unreadable(of *db.Collection, name []byte, kind bsoncore.Type) error {
	return fmt.Errorf("a document of %s has in %q a %v that this program does not write", of.Name, name, kind)
}

// each calls element for every element of a document.
func each(raw []byte, element func(name []byte, kind bsoncore.Type, data []byte) error) error {
	length, _, ok := bsoncore.ReadLength(raw)
	if !ok || int(length) > len(raw) || length < 5 {
		return errDamaged
	}
	rest := raw[4 : length-1]
	for len(rest) > 0 {
		e, next, ok := bsoncore.ReadElement(rest)
		if !ok {
			return errDamaged
		}
		v, err := e.ValueErr()
		if err != nil {
			return errDamaged
		}
		if err := element(e.KeyBytes(), v.Type, v.Data); err != nil {
			return err
		}
		rest = next
	}
	return nil
}

// elements returns the number of elements of a document or an array.
func elements(raw []byte) (n int) {
	_ = each(raw, func([]byte, bsoncore.Type, []byte) error { // for a damaged document, count the readable elements
		n++
		return nil
	})
	return n
}

// errDamaged reports an answer that is not valid BSON.
var errDamaged = errors.New("the server's answer is damaged")

// lookUp returns an element of a document by its path, and whether it exists.
func lookUp(raw []byte, path ...string) (bsoncore.Value, bool) {
	v, err := bsoncore.Document(raw).LookupErr(path...)
	return v, err == nil
}

// documentOf returns the document at a path, or nil.
func documentOf(raw []byte, path ...string) []byte {
	v, ok := lookUp(raw, path...)
	if !ok || v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		return nil
	}
	return v.Data
}

// numberAt returns the whole number at a path, or 0.
func numberAt(raw []byte, path ...string) int64 {
	v, _ := lookUp(raw, path...)
	n, _ := integerOf(v.Type, v.Data)
	return n
}

// textAt returns the text at a path, or "".
func textAt(raw []byte, path ...string) string {
	v, _ := lookUp(raw, path...)
	text, _ := v.StringValueOK()
	return text
}
