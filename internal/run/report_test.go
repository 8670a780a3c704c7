package run_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/report"
	"stroppy/internal/run"
)

// TestPageIsAFunctionOfTheDirectory checks that the page is a function of the run's directory. Missing files are not
// needed, and broken files are reported.
func TestPageIsAFunctionOfTheDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := run.WritePage(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a result: %v", err)
	}
	result := &report.Result{Schema: report.Schema, Verdict: "unknown", Reason: "Nothing was driven."}
	data, err := result.JSON()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page := func() []byte {
		t.Helper()
		path, err := run.WritePage(dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write(report.FileName, string(data))
	bare := page()
	if !bytes.Contains(bare, []byte("Nothing was driven.")) || !bytes.Equal(bare, page()) {
		t.Error("the page of a result alone does not say so, or is another each time")
	}
	write(report.SeriesFile, "second,committed,rejected,aborted,unknown,p50_ms,p99_ms,max_ms\n0,4242,0,0,0,1,2,3\n")
	write(report.ResourcesFile, "second,client_cpu,client_rss_bytes,servers_cpu,servers_rss_bytes\n0,0.765,1000000,,\n")
	if text := page(); !bytes.Contains(text, []byte("4242")) || !bytes.Contains(text, []byte("0.765")) {
		t.Error("the page has neither series nor resources")
	}
	write(report.SeriesFile, "second,committed\n0,many\n")
	if _, err := run.WritePage(dir); err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), dir) {
		t.Errorf("with a broken series: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 4 {
		t.Errorf("the directory holds %v", entries)
	}
}
