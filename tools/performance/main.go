// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command performance makes the measured part of docs/performance/README.md from what test/bench has written with
// --json: the tables, between two comments of the page, and the curves, as pictures beside it. Where it kept CPU
// profiles, too, one of the tables shows what the time is spent on.
//
//	go run . -from ../../out/performance -page ../../docs/performance/README.md -pictures ../../docs/performance
//
// With -fleet, it draws only the curves of a fleet of Clusters, from what test/fleet has written with --json.
//
// The tables have all cells and bars of the files cells*.json. Curves are drawn from callers*.json, bodies*.json and
// handlers*.json, and those of a fleet from fleet*.json. A run may be in several files, in the order of their names.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookgate/hookgate/test/bench/report"
)

// curves has what is drawn from each file.
var curves = map[string]func(*report.Result) ([]picture, error){
	"callers": callerCurves, "bodies": bodyCurves, "handlers": handlerCurves,
}

func main() {
	from := flag.String("from", "", "`directory` of the measurements")
	page := flag.String("page", "", "`file` whose tables are replaced")
	pictures := flag.String("pictures", "", "`directory` of the curves")
	against := flag.String("against", "", "another `page`, to print how the bars of both differ, and change nothing")
	fleet := flag.String("fleet", "", "`directory` of the measurements of a fleet, to draw only its curves")
	flag.Parse()
	var err error
	switch {
	case *fleet != "":
		err = drawFrom(*fleet, "fleet", fleetCurves, *pictures)
	case *against != "":
		err = compare(*against, *page)
	default:
		err = run(*from, *page, *pictures)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// compare prints how the bars of two pages differ.
func compare(then, now string) error {
	var pages [2]string
	for i, name := range []string{then, now} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		pages[i] = string(text)
	}
	table, err := comparison(pages[0], pages[1])
	if err != nil {
		return err
	}
	_, err = fmt.Print(table)
	return err
}

func run(from, page, pictures string) error {
	parts, err := report.Read(from, "cells")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	profiles, err := profileTable(from, parts)
	if err != nil {
		return err
	}
	measured := tables(parts)
	if profiles != "" {
		measured += "\n" + profiles
	}
	replaced, err := replaceTables(string(text), measured)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	if err := os.WriteFile(page, []byte(replaced), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	for name, draw := range curves {
		if err := drawFrom(from, name, draw, pictures); err != nil {
			return err
		}
	}
	return nil
}

// drawFrom draws the curves of the files of a directory that have a name, and writes them into another directory.
func drawFrom(from, name string, draw func(*report.Result) ([]picture, error), pictures string) error {
	parts, err := report.Read(from, name)
	if err != nil {
		return err
	}
	drawn, err := draw(merge(parts))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range drawn {
		if err := os.WriteFile(filepath.Join(pictures, c.name+".svg"), c.svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}
