// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/cli/target"
)

// isPlugin reports whether a program of this name is run as a plug-in of kubectl, which knows it by its name.
func isPlugin(program string) bool {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	return name == "kubectl-hookgate"
}

// asPlugin makes the texts of root and its commands those of a plug-in of kubectl. Its client commands mean a gateway
// in the cluster of kubectl, unless a flag says otherwise.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl hookgate"}
	root.SetVersionTemplate("kubectl hookgate {{.Version}}\n")
	named := strings.NewReplacer("  hookgate ", "  kubectl hookgate ", `"hookgate `, `"kubectl hookgate `)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Long, cmd.Example = named.Replace(cmd.Long), named.Replace(cmd.Example)
		if f := cmd.Flags().Lookup("gateway"); f != nil {
			_ = f.Value.Set(target.DefaultGateway) // any text is accepted
			f.DefValue = target.DefaultGateway
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
