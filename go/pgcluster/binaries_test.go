package pgcluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func fakePrograms(t *testing.T, dir string, names ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheNewestReleaseIsChosenByNumber(t *testing.T) {
	root := t.TempDir()
	for _, release := range []string{"9.6", "18", "10"} {
		fakePrograms(t, filepath.Join(root, "pg-"+release, "bin"), "initdb", "pg_ctl", "psql")
	}
	found, err := findAmong(nil, nil, []string{filepath.Join(root, "pg-*", "bin")})
	if want := filepath.Join(root, "pg-18", "bin"); err != nil || found.BinDir() != want {
		t.Errorf("got %v, %v; want %s", found, err, want)
	}
}

func TestTheArgumentComesBeforeThePath(t *testing.T) {
	root := t.TempDir()
	extra := fakePrograms(t, filepath.Join(root, "extra"), "initdb", "postgres")
	path := fakePrograms(t, filepath.Join(root, "path"), "initdb", "pg_ctl", "psql")
	found, err := findAmong([]string{extra}, []string{path}, nil)
	if err != nil || found.BinDir() != extra || found.Psql != "" {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	client := fakePrograms(t, t.TempDir(), "psql")
	_, err := findAmong(nil, []string{client}, nil)
	if !errors.Is(err, ErrPostgresUnavailable) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{client, "initdb", "client package alone", "server package"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

func TestRowsAndErrorsOfAnyBytesCanBeRead(t *testing.T) {
	body := []byte{0, 2, 255, 255, 255, 255, 0, 0, 0, 2, 'o', 'k'}
	for cut := range body {
		rowOf(body[:cut])
	}
	if got := rowOf(body); got != "|ok" {
		t.Errorf("got %q", got)
	}
	if got := errorOf([]byte("SERROR\x00C42703\x00Mno column\x00\x00")).Error(); got != "ERROR:  no column (SQLSTATE 42703)" {
		t.Errorf("got %q", got)
	}
}
