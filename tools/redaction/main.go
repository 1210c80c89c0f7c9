// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command redaction VERSION writes the rules of that version of gitleaks that package redact uses, as JSON, to stdout:
// those that recognize a secret by its text alone.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"
)

const module = "github.com/zricethezav/gitleaks/v8"

// left are the rules in whose place package redact has its own, because it knows more of what they are about, or
// because their keywords are parts of many words.
var left = map[string]bool{
	"generic-api-key": true, "private-key": true, "jwt": true, "jwt-base64": true, "twilio-api-key": true,
}

// rule is a rule, with the names that it has in both files.
type rule struct {
	ID       string   `json:"id"                toml:"id"`
	Regex    string   `json:"regex"             toml:"regex"`
	Group    int      `json:"group,omitempty"   toml:"secretGroup"`
	Entropy  float64  `json:"entropy,omitempty" toml:"entropy"`
	Keywords []string `json:"keywords"          toml:"keywords"`
	Path     string   `json:"-"                 toml:"path"`
}

func main() {
	if err := run(os.Args[1]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(version string) error {
	at := module + "@" + version
	out, err := exec.Command("go", "mod", "download", "-json", at).Output()
	if err != nil {
		return fmt.Errorf("download %s: %w: %s", at, err, out)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(downloaded.Dir, "config", "gitleaks.toml"))
	if err != nil {
		return err
	}
	var all struct{ Rules []rule }
	if err := toml.Unmarshal(text, &all); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(downloaded.Dir, "LICENSE"))
	if err != nil {
		return err
	}
	kept := make([]rule, 0, len(all.Rules))
	for _, r := range all.Rules {
		if r.Path == "" && r.Regex != "" && len(r.Keywords) > 0 && !left[r.ID] {
			kept = append(kept, r)
		}
	}
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(map[string]any{"source": at, "license": string(license), "rules": kept})
}
