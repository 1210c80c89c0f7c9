// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image packs hookgate into a container image of several platforms, and writes it as one OCI archive: no
// container engine, no base image, no registry. The image holds only the binary and the certificate authorities that
// Mozilla trusts. The same binaries give the same bytes, anywhere and at any time.
//
// It leaves building the binaries to the Makefile, and refuses binaries that are not static or not reproducible.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "image: %s\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	var s spec
	var output string
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&s.name, "name", "", "name of the image, without a tag")
	flags.StringVar(&s.version, "version", "", "version, which is the tag")
	flags.StringVar(&s.revision, "revision", "", "commit that the binaries were built from; may be empty")
	flags.StringVar(&output, "output", "", "file to write the archive to")
	flags.Func("binary", "binary of one platform, as OS/ARCHITECTURE=FILE; once for each platform", s.addBinary)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	if output == "" {
		return errors.New("-output is required")
	}
	index, err := newIndex(s)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("digest of the image: %w", err)
	}
	if err := writeArchive(output, s.reference(), s.version, index); err != nil {
		return fmt.Errorf("write %s: %w", output, err)
	}
	_, err = fmt.Fprintf(out, "%s@%s\n", s.reference(), digest)
	return err
}

// spec holds the inputs of an image.
type spec struct {
	name, version, revision string
	binaries                []binary
}

// binary is the program for one platform.
type binary struct {
	os, arch, file string
}

func (b binary) platform() string { return b.os + "/" + b.arch }

func (s *spec) addBinary(value string) error {
	platform, file, ok := strings.Cut(value, "=")
	goos, arch, ok2 := strings.Cut(platform, "/")
	if !ok || !ok2 || goos == "" || arch == "" || file == "" {
		return fmt.Errorf("want OS/ARCHITECTURE=FILE, got %q", value)
	}
	s.binaries = append(s.binaries, binary{os: goos, arch: arch, file: file})
	return nil
}

// tag matches the tags of the distribution specification.
var tag = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

func (s *spec) check() error {
	if s.name == "" {
		return errors.New("-name is required")
	}
	if !tag.MatchString(s.version) {
		return fmt.Errorf("-version: want what may be a tag (letters, digits, and ._- after the first), got %q", s.version)
	}
	if len(s.binaries) == 0 {
		return errors.New("-binary is required")
	}
	seen := map[string]bool{}
	for _, b := range s.binaries {
		if seen[b.platform()] {
			return fmt.Errorf("-binary: %s is there twice", b.platform())
		}
		seen[b.platform()] = true
	}
	return nil
}

func (s *spec) reference() string { return s.name + ":" + s.version }
