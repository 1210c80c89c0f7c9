// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/examples/requests"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/scaffold"
)

// NewInitCommand returns the command hookgate init.
func NewInitCommand() *cobra.Command {
	var dir, module string
	kinds := scaffold.Kinds()
	cmd := &cobra.Command{
		Use:   "init {" + strings.Join(kinds, " | ") + "} NAME",
		Short: "Make a project: a rule, a job, or an extension",
		Long: "Make a project in a new folder: a handler with its test, CI for GitHub, and manifests.\n" +
			"Projects of the kinds rule and job need no server. Every other kind is the name of a\n" +
			"programming language. Such a project is an extension that uses Hookgate's package for the language.\n" +
			"The Deployment of the project runs the extension and, beside it, a gateway.\n\n" +
			"NAME is the name of the project and of its objects. Nothing is overwritten.",
		Example: "  hookgate init rule approve-upgrade\n" +
			"  hookgate init go acme --module github.com/acme/acme",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cmdline.Usagef("want a kind of project and a name, got %d arguments; the kinds are %s",
					len(args), strings.Join(kinds, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return initProject(cmd.OutOrStdout(), cmdline.Program(cmd), args[0], args[1], dir, module)
		},
		ValidArgs: kinds,
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "", "folder to make the project in; default: NAME")
	f.StringVar(&module, "module", "", "module path of a Go project; default: example.com/NAME")
	return cmd
}

// initProject makes a project, and prints its files and the first commands to run. The program was started by the name
// program.
func initProject(out io.Writer, program, kind, name, dir, module string) error {
	if !slices.Contains(scaffold.Kinds(), kind) {
		return cmdline.Usagef("no project of kind %q: want one of %s", kind, strings.Join(scaffold.Kinds(), ", "))
	}
	if err := scaffold.CheckName(name); err != nil {
		return cmdline.Usagef("name %q %w", name, err)
	}
	if module != "" && kind != "go" {
		return cmdline.Usagef("--module is for projects in Go: leave it out")
	}
	if !modulePath.MatchString(cmp.Or(module, "example.com/"+name)) {
		return cmdline.Usagef("--module %q: want the path of a module, such as github.com/acme/%s", module, name)
	}
	values := pinned(cmdline.CurrentBuild())
	values.Name, values.Module = name, cmp.Or(module, "example.com/"+name)
	values.Request = string(requests.Example(
		hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterUpgrade"}))
	dir = cmp.Or(dir, name)
	clone := cloneFrom(dir)
	values.Clone = cmdline.ShellWord(cmp.Or(clone, "../hookgate"))
	steps := values.Steps(kind)
	if len(steps) > 0 && strings.Trim(values.Clone, "./") != "" { // else the clone has the project in it
		values.Install = installFrom(values.Clone, values.Ref)
	}
	files, err := scaffold.Make(kind, values)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err := scaffold.Write(dir, files); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	for _, f := range files {
		_, _ = fmt.Fprintln(out, filepath.Join(dir, filepath.FromSlash(f.Path)))
	}
	self, _ := os.Executable()
	first := append(inPath(program, self), "cd "+cmdline.ShellWord(dir))
	if len(steps) > 0 {
		_, _ = fmt.Fprintf(out, "\nThis build of Hookgate is not a release, so no registry has its packages. The project\n"+
			"uses the packages in a clone of Hookgate. Relative to the project's folder, the path of the\n"+
			"clone is %s.\n", values.Clone)
		if clone == "" {
			first = append(first, gitClone(values.Clone, values.Ref))
		}
		first = append(first, steps...)
	}
	first = append(first, scaffold.FirstCommand(files))
	_, err = fmt.Fprintf(out, "\nREADME.md says how to go on. First:\n\n  %s\n", strings.Join(first, "\n  "))
	return err
}

// inPath returns the command after which a shell finds self, the file of this program, as hookgate. There is none if a
// shell has found it by its name, would find it, or never can because the file has another name.
func inPath(program, self string) []string {
	if !strings.ContainsRune(program, filepath.Separator) || filepath.Base(self) != "hookgate" {
		return nil
	}
	if found, err := exec.LookPath("hookgate"); err == nil && physical(found) == physical(self) {
		return nil
	}
	return []string{"export PATH=" + cmdline.ShellWord(filepath.Dir(self)) + `:"$PATH"`}
}

// modulePath is what is written into a go.mod without quotes.
var modulePath = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._~/-]*$`)

// released matches the version of a release, as the Makefile does for the packages. Builds between releases have
// versions such as v0.1.0-5-g1a2b3c4, or that end with the commit if the go command has built them from the module.
var (
	released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)
	fromOf   = regexp.MustCompile(`^v.*[-.][0-9]{14}-([0-9a-f]{12})$`)
	minorOf  = regexp.MustCompile(`^go([0-9]+\.[0-9]+)`)
)

// pinned returns the versions that a project made by a build has: those of the release, or the commit of the build.
func pinned(b cmdline.BuildInfo) scaffold.Values {
	v := scaffold.Values{Ref: "main", ImageTag: "dev", Python: "0.0.0.dev0", NPM: "0.0.0-dev", Go: "1.26"}
	from := fromOf.FindStringSubmatch(b.Version)
	switch number := strings.TrimPrefix(b.Version, "v"); {
	case released.MatchString(b.Version):
		v.Ref, v.ImageTag, v.Python, v.NPM = b.Version, b.Version, number, number
	case b.Commit != "unknown":
		v.Ref = b.Commit
	case from != nil:
		v.Ref = from[1]
	}
	v.Install = "go install github.com/hookgate/hookgate/cmd/hookgate@" + v.Ref
	if v.ImageTag != v.Ref { // go.mod of a commit has replacements, with which the go command installs nothing
		v.Install = installFrom(`"$RUNNER_TEMP/hookgate"`, v.Ref)
	}
	if m := minorOf.FindStringSubmatch(runtime.Version()); m != nil {
		v.Go = m[1]
	}
	return v
}
