package main

import (
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"

	"stroppy/tools/try"
)

// TestReportWithWarningIsNoPicture checks that no report with a warning becomes a picture. A note does no harm.
func TestReportWithWarningIsNoPicture(t *testing.T) {
	const head = "VALID  bank on SQLite 3.54.1\n  All 8 required checks hold.\n"
	if try.Attempt(func() { quiet([]byte(head + "  warning           The client was the bottleneck.\n")) }) == nil {
		t.Error("a report with a warning is taken")
	}
	quiet([]byte(head + "  note              Steady state not assessed.\n"))
}

// TestEachPictureIsReadable checks that each picture is there and can be read.
func TestEachPictureIsReadable(t *testing.T) {
	for _, p := range pictures {
		file, err := os.Open(filepath.Join("../..", images, p.file))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if filepath.Ext(p.file) == ".png" {
			if _, err := png.Decode(file); err != nil {
				t.Errorf("%s: %v", p.file, err)
			}
			continue
		}
		d := xml.NewDecoder(file)
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", p.file, err)
		}
	}
}
