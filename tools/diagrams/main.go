// Diagrams draws the pictures of the documentation. Their sources are texts in
// the language of Pikchr (https://pikchr.org), one per picture; a shared file
// is put before each. Both the pictures and their sources are checked in, so
// that readers need no tool.
//
//	go run ./diagrams DIR            draw DIR/*.pikchr
//	go run ./diagrams -check DIR     list the pictures that do not match their sources
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	source = ".pikchr"
	image  = ".svg"
	style  = "style" + source // of all pictures; not one itself
)

func main() {
	check := flag.Bool("check", false, "only list what is out of date, and fail if anything is")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: diagrams [-check] DIR")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run draws all pictures of a directory, or compares them with the existing
// files.
func run(dir string, check bool) error {
	shared, err := os.ReadFile(filepath.Join(dir, style))
	if err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*"+source))
	if err != nil {
		return err
	}
	var errs []error
	drawn := make(map[string]bool)
	for _, path := range sources {
		if filepath.Base(path) == style {
			continue
		}
		target := strings.TrimSuffix(path, source) + image
		drawn[target] = true
		if err := picture(path, target, shared, check); err != nil {
			errs = append(errs, err)
		}
	}
	images, err := filepath.Glob(filepath.Join(dir, "*"+image))
	if err != nil {
		return err
	}
	for _, target := range images {
		if !drawn[target] {
			errs = append(errs, fmt.Errorf("%s has no source", target))
		}
	}
	return errors.Join(errs...)
}

// picture draws one picture, or compares it with the existing file.
func picture(path, target string, shared []byte, check bool) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	svg, err := draw(string(shared), string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	there, err := os.ReadFile(target)
	switch {
	case err == nil && bytes.Equal(there, svg):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case check:
		return fmt.Errorf(`%s does not match its source: run "make diagrams"`, target)
	}
	return os.WriteFile(target, svg, 0o644)
}
