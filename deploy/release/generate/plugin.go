// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// pluginFile is the manifest with which krew installs the program as a plug-in of kubectl.
	pluginFile = "plugin.yaml"
	// pluginProgram is the name by which kubectl finds the plug-in.
	pluginProgram = "kubectl-hookgate"
	downloads     = "https://github.com/hookgate/hookgate/releases/download/"
)

// The parts of a Plugin of krew.googlecontainertools.github.com/v1alpha2 that a release fills in; see
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
type (
	plugin struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       pluginSpec        `json:"spec"`
	}
	pluginSpec struct {
		Version          string           `json:"version"`
		Homepage         string           `json:"homepage"`
		ShortDescription string           `json:"shortDescription"`
		Description      string           `json:"description"`
		Platforms        []pluginPlatform `json:"platforms"`
	}
	pluginPlatform struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		URI    string `json:"uri"`
		SHA256 string `json:"sha256"`
		Bin    string `json:"bin"`
	}
)

// plugin adds the manifest of the plug-in and its archives, one for each program hookgate-OS-ARCHITECTURE in files. krew
// unpacks archives alone, and wants the license in them.
func (o *options) plugin(files map[string][]byte) error {
	license, err := os.ReadFile(filepath.Join(o.source, "..", "..", "LICENSE"))
	if err != nil {
		return err
	}
	p := plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "hookgate"},
		Spec: pluginSpec{
			Version: o.version, Homepage: "https://github.com/hookgate/hookgate",
			ShortDescription: "See and call Runtime Extensions of Cluster API",
			Description: "Shows which Runtime Extensions are up or down, among those that a Hookgate in the cluster " +
				"calls, and which handlers hold a Cluster, and why. Calls and checks extensions, and judges upgrades of " +
				"Cluster API.\n",
		},
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		platform, isProgram := strings.CutPrefix(name, "hookgate-")
		system, architecture, ok := strings.Cut(platform, "-")
		if !isProgram || !ok || strings.Contains(platform, ".") || system == "render" {
			continue
		}
		members := []member{
			{name: pluginProgram, mode: 0o755, content: files[name]}, {name: "LICENSE", mode: 0o644, content: license},
		}
		if render, ok := files["hookgate-render-"+platform]; ok { // which the program runs, and looks for beside itself
			members = append(members, member{name: "hookgate-render", mode: 0o755, content: render})
		}
		archive, err := pack(members)
		if err != nil {
			return err
		}
		file := pluginProgram + "-" + platform + ".tar.gz"
		files[file] = archive
		entry := pluginPlatform{
			URI: downloads + o.version + "/" + file, SHA256: fmt.Sprintf("%x", sha256.Sum256(archive)), Bin: pluginProgram,
		}
		entry.Selector.MatchLabels = map[string]string{"os": system, "arch": architecture}
		p.Spec.Platforms = append(p.Spec.Platforms, entry)
	}
	if len(p.Spec.Platforms) == 0 { // a release without programs
		return nil
	}
	files[pluginFile], err = yaml.Marshal(p)
	return err
}
