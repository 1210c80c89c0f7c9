// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// registration holds the fields of an ExtensionConfig's manifest.
type registration struct {
	name     string
	url      string
	settings map[string]string
	// namespace, if set, limits the extension to Clusters in that namespace.
	namespace string
}

// manifest returns the ExtensionConfig in the storage version.
func (r registration) manifest(a *authority) string { return r.render(a, "v1beta2") }

func (r registration) render(a *authority, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: runtime.cluster.x-k8s.io/%s\nkind: ExtensionConfig\nmetadata:\n  name: %s\nspec:\n  clientConfig:\n    url: %s\n    caBundle: %s\n",
		version, r.name, r.url, base64.StdEncoding.EncodeToString(a.PEM))
	if len(r.settings) > 0 {
		b.WriteString("  settings:\n")
		for _, key := range slices.Sorted(maps.Keys(r.settings)) {
			fmt.Fprintf(&b, "    %s: %q\n", key, r.settings[key])
		}
	}
	if r.namespace != "" {
		fmt.Fprintf(&b, "  namespaceSelector:\n    matchLabels:\n      kubernetes.io/metadata.name: %s\n", r.namespace)
	}
	return b.String()
}

// extensionProgram is a running extension built on Cluster API's own server.
type extensionProgram struct {
	*process.Process
	url string
}

// startExtension runs the extension; port "0" picks a free port.
func startExtension(t testing.TB, a *authority, name, port string) *extensionProgram {
	t.Helper()
	path := process.Program(t, extensionVariable)
	cmd := exec.Command(path, "--port", port, "--cert-dir", a.dir(t), "--name", name)
	e := &extensionProgram{Process: process.Run(t, "extension "+name, cmd)}
	e.url = "https://" + e.Expect(t, `extension serving https=(127\.0\.0\.1:\d+)\n`)[1]
	return e
}
