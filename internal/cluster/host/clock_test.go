package host

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClockSettingIsIndependentOfProcessStart checks that the line for libfaketime gives one clock, whenever the
// process was started. libfaketime computes start + offset + (now - start) * rate.
func TestClockSettingIsIndependentOfProcessStart(t *testing.T) {
	from := time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)
	for _, d := range []deviation{
		{}, {ahead: 10 * time.Second, from: from}, {ahead: -90 * time.Minute, from: from}, {ahead: 123456 * time.Microsecond, from: from},
		{from: from, drift: 0.05}, {from: from, drift: -0.5}, {from: from, drift: 99}, {ahead: time.Second, from: from, drift: 1},
	} {
		for _, started := range []time.Duration{-time.Hour, 0, 20 * time.Second} {
			for _, asked := range []time.Duration{0, time.Minute} {
				start, now := from.Add(started), from.Add(max(started, 0)+asked)
				var offset, rate float64
				if n, err := fmt.Sscanf(d.line(start), "%g x%g\n", &offset, &rate); n != 2 || err != nil {
					t.Fatalf("%q: %v", d.line(start), err)
				}
				got := start.Add(time.Duration((offset + now.Sub(start).Seconds()*rate) * 1e9))
				want := now.Add(d.ahead)
				if !d.from.IsZero() {
					want = want.Add(time.Duration(d.drift * float64(now.Sub(d.from))))
				}
				if math.Abs(got.Sub(want).Seconds()) > 1e-5 {
					t.Errorf("%+v, started %v, asked %v later, line %q: %v, want %v", d, started, asked, d.line(start), got, want)
				}
			}
		}
	}
}

// TestUnsteerableProgramsAreRejected checks that a Go program, a static program, a script and a missing file are
// rejected, because libfaketime cannot change their clocks.
func TestUnsteerableProgramsAreRejected(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: 64, Phentsize: 56, Shentsize: 64,
	}
	var static bytes.Buffer
	if err := binary.Write(&static, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for program, c := range map[string]struct{ text, want string }{
		self:                         {"", "is written in Go"},
		filepath.Join(dir, "static"): {static.String(), "is linked statically"},
		filepath.Join(dir, "script"): {"#!/bin/sh\n", "find out how"},
		filepath.Join(dir, "none"):   {"", "no such file"},
	} {
		if c.text != "" {
			if err := os.WriteFile(program, []byte(c.text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if library, err := steerable(program); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v, want %q in it", program, library, err, c.want)
		}
	}
}

// Jump is JumpClock without verification.
func (s *Server) Jump(ctx context.Context, by time.Duration) (heal func(context.Context) error, err error) {
	return s.steer(deviation{ahead: by, from: time.Now()})(ctx)
}

// Rate is DriftClock without verification.
func (s *Server) Rate(ctx context.Context, factor float64) (heal func(context.Context) error, err error) {
	return s.steer(driftOf(factor))(ctx)
}
