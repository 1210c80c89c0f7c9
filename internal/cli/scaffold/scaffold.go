// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold makes projects for authors of extensions, rules and jobs from templates: a handler with its test,
// CI, and manifests. What it makes belongs to its author.
//
// All functions are safe for concurrent use.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"
)

//go:embed all:templates
var templates embed.FS

// longestName leaves room in a DNS label for what the manifests append to a name.
const longestName = 50

// kind is a kind of projects, with its folders of templates: its own, and one that it shares with others.
type kind struct {
	name    string
	folders []string
}

var kinds = []kind{
	{"rule", []string{"rule"}},
	{"job", []string{"job"}},
	{"go", []string{"go", "server"}},
	{"python", []string{"python", "server"}},
	{"typescript", []string{"typescript", "server"}},
	{"java", []string{"java", "server"}},
	{"rust", []string{"rust", "server"}},
}

// Kinds returns the kinds of projects: rule, job, and languages.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Values are what the templates differ in.
type Values struct {
	// Name is the name of the project, of its namespace and of its objects: see CheckName.
	Name string
	// Module is the path of the module of a project in Go.
	Module string
	// Ref is the tag or the commit of Hookgate that the project uses, and ImageTag is the tag of its image.
	Ref, ImageTag string
	// Clone is the folder of a clone of Hookgate, relative to the project, as a word for a shell.
	Clone string
	// Install is the command with which CI installs the program hookgate at Ref.
	Install string
	// Python and NPM are the versions of the packages for authors. Those for Java and Rust have the version NPM.
	Python, NPM string
	// Go is the version of Go that Hookgate needs.
	Go string
	// Request is an example of a request of BeforeClusterUpgrade, in YAML.
	Request string
}

// Steps returns the commands that let a project of a kind use what Hookgate at Ref has, in the clone, because no
// registry has it. There are none for a release, and for what needs no package.
func (v Values) Steps(of string) []string {
	clone := v.Clone
	switch {
	case v.ImageTag == v.Ref:
	case of == "go":
		return []string{
			"sed -i.bak 's| " + v.Ref + "$| v0.0.0|' go.mod && rm go.mod.bak",
			"go mod edit -replace github.com/hookgate/hookgate/gen/go=" + clone + "/gen/go",
			"go mod edit -replace github.com/hookgate/hookgate/sdk=" + clone + "/sdk",
		}
	case of == "python":
		return []string{"make -C " + clone + " packages-python", "export PIP_FIND_LINKS=" + clone + "/out/packages"}
	case of == "typescript":
		return []string{
			"make -C " + clone + " packages-typescript", "npm install " + clone + "/out/packages/hookgate-sdk-" + v.NPM + ".tgz",
		}
	case of == "java":
		file := clone + "/out/packages/hookgate-" + v.NPM
		return []string{
			"make -C " + clone + " packages-java",
			"mvn -B -q -ntp org.apache.maven.plugins:maven-install-plugin:3.1.4:install-file" +
				" -Dfile=" + file + ".jar -DpomFile=" + file + ".pom",
		}
	case of == "rust":
		return []string{
			"mkdir -p .cargo",
			"echo 'patch.crates-io.hookgate.path = \"" + clone + "/sdk/rust\"' > .cargo/config.toml",
		}
	}
	return nil
}

// File is a file of a project.
type File struct {
	// Path is relative to the project, and has slashes.
	Path    string
	Content []byte
}

// CheckName returns an error unless a project can have the name: a DNS label that begins with a letter, as names of
// Services do, with room for a suffix. The error completes a sentence that begins with the name.
func CheckName(name string) error {
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return errors.New("must be a DNS label (lower case letters, digits and -) that begins with a letter, " +
			"such as approve-upgrade")
	}
	if len(name) > longestName {
		return fmt.Errorf("must have at most %d characters: names of objects are made from it", longestName)
	}
	return nil
}

// Make returns the files of a project of a kind, in the order of their paths.
func Make(of string, v Values) ([]File, error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == of })
	if i < 0 {
		return nil, fmt.Errorf("no project of kind %q: want one of %s", of, strings.Join(Kinds(), ", "))
	}
	if err := CheckName(v.Name); err != nil {
		return nil, fmt.Errorf("name %q %w", v.Name, err)
	}
	var files []File
	for _, folder := range kinds[i].folders {
		root := path.Join("templates", folder)
		err := fs.WalkDir(templates, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := render(name, v)
			if err != nil {
				return err
			}
			files = append(files, File{strings.TrimSuffix(strings.TrimPrefix(name, root+"/"), ".tmpl"), content})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("templates of %s: %w", of, err)
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// render returns the text of a template. Its actions are in {% and %}, which no file has itself.
func render(name string, v Values) ([]byte, error) {
	text, err := templates.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Delims("{%", "%}").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Write writes the files into a directory, which it makes if necessary. It writes nothing if one of them exists.
func Write(dir string, files []File) error {
	for _, f := range files {
		file := filepath.Join(dir, filepath.FromSlash(f.Path))
		if _, err := os.Lstat(file); err == nil {
			return fmt.Errorf("%s already exists, so nothing was written: name another folder with --dir", file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, f := range files {
		if err := write(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Content); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file that does not exist. A script may be executed.
func write(name string, content []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // as in any other project
		return err
	}
	mode := fs.FileMode(0o644)
	if bytes.HasPrefix(content, []byte("#!")) {
		mode = 0o755
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(content)
	return err
}

// FirstCommand returns the first command in the README.md of a project.
func FirstCommand(files []File) string {
	for _, f := range files {
		if f.Path == "README.md" {
			_, rest, _ := strings.Cut(string(f.Content), "```sh\n")
			command, _, _ := strings.Cut(rest, "\n")
			return command
		}
	}
	return ""
}
