// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sample changes the product's code in small ways at random places, one at a time, and reports which of these
// mutants the tests of their packages notice. Gremlins, which make mutation runs, tries all places, and needs hours for
// the packages whose tests take long; a sample of a few hundred estimates the same share within a few percent.
//
// The code itself is not changed: mutants are built with -overlay.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		os.Exit(1)
	}
}

// goPackage is what go list tells of a package.
type goPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	TestGoFiles     []string
	XTestGoFiles    []string
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sample", flag.ContinueOnError)
	size := flags.Int("size", 300, "number of mutants")
	seed := flags.Uint64("seed", 1, "seed of the sample")
	threshold := flags.Float64("threshold", 85, "least share of mutants to notice, in percent")
	timeout := flags.Duration("timeout", 3*time.Minute, "longest time of the tests of one package")
	limit := flags.Duration("for", 0, "start no other mutant after this time (0: no limit)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	packages, err := list(ctx, flags.Args())
	if err != nil {
		return err
	}
	var all []mutant
	for _, p := range packages {
		found, err := mutants(p)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	random := rand.New(rand.NewPCG(*seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	_, _ = fmt.Fprintf(out, "%d mutants in %d packages\n", len(all), len(packages))
	chosen := all[:min(*size, len(all))]
	if *limit > 0 { // in random order, so that those that are tried are a sample, too
		enough, cancel := context.WithTimeout(ctx, *limit)
		defer cancel()
		return try(ctx, enough.Done(), chosen, *timeout, *threshold, out)
	}
	// One package after the other, so that its build is still cached.
	slices.SortStableFunc(chosen, func(a, b mutant) int { return strings.Compare(a.pkg.ImportPath, b.pkg.ImportPath) })
	return try(ctx, nil, chosen, *timeout, *threshold, out)
}

func list(ctx context.Context, patterns []string) ([]goPackage, error) {
	args := append([]string{"list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var p goPackage
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// try tests the mutants, one after the other until enough is closed, and prints what came of each.
func try(
	ctx context.Context, enough <-chan struct{}, chosen []mutant, timeout time.Duration, threshold float64, out io.Writer,
) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	counts := map[string][2]int{} // noticed and missed mutants by package
	noticed, missed, invalid := 0, 0, 0
tries:
	for _, m := range chosen {
		select {
		case <-enough:
			break tries
		default:
		}
		result, by, err := m.test(ctx, dir, timeout)
		if err != nil {
			return err
		}
		c := counts[m.pkg.ImportPath]
		switch result {
		case "noticed":
			noticed++
			c[0]++
		case "MISSED":
			missed++
			c[1]++
		default:
			invalid++
		}
		counts[m.pkg.ImportPath] = c
		_, _ = fmt.Fprintf(out, "%-8s %s: %s%s\n", result, m.position(), m.change(), by)
	}
	_, _ = fmt.Fprintf(out, "\n%-60s %8s %7s\n", "package", "noticed", "missed")
	for _, m := range chosen {
		if c, ok := counts[m.pkg.ImportPath]; ok {
			_, _ = fmt.Fprintf(out, "%-60s %8d %7d\n", m.pkg.ImportPath, c[0], c[1])
			delete(counts, m.pkg.ImportPath)
		}
	}
	share := 100 * float64(noticed) / float64(max(noticed+missed, 1))
	_, _ = fmt.Fprintf(out, "%.1f %% of %d mutants were noticed; %d more do not compile\n", share, noticed+missed, invalid)
	if share < threshold {
		return fmt.Errorf("%.1f %% were noticed, which is less than %.0f %%", share, threshold)
	}
	return nil
}

// test runs the tests of the mutant's package with the mutant in place of its file. It returns what came of it, and the
// test that noticed.
func (m mutant) test(ctx context.Context, dir string, timeout time.Duration) (result, by string, err error) {
	if len(m.pkg.TestGoFiles)+len(m.pkg.XTestGoFiles) == 0 {
		return "MISSED", "", nil
	}
	changed := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(changed, m.source(), 0o600); err != nil {
		return "", "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	data, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	if err != nil {
		return "", "", err
	}
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		return "", "", err
	}
	output, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-failfast",
		"-timeout", timeout.String(), "-overlay", overlay, m.pkg.ImportPath).CombinedOutput()
	switch {
	case err == nil:
		return "MISSED", "", nil
	case bytes.Contains(output, []byte("[build failed]")):
		return "invalid", "", nil
	default:
		if name := failed.FindSubmatch(output); name != nil {
			by = " (" + string(name[1]) + ")"
		}
		return "noticed", by, nil
	}
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
