// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"bytes"
	"os"
	"path/filepath"
)

// ownModule is how the go.mod of this module begins.
const ownModule = "module github.com/hookgate/hookgate\n"

// cloneFrom returns the path from the folder of a project to a clone of Hookgate: the one that has this program, the
// project or the working directory in it, or that lies beside the project as hookgate. It is empty if there is none.
func cloneFrom(project string) string {
	project = physical(project)
	program, _ := os.Executable() // without it, the other places
	for _, place := range []string{program, project, ".", filepath.Join(filepath.Dir(project), "hookgate")} {
		if clone := cloneAbove(physical(place)); clone != "" {
			path, _ := filepath.Rel(project, clone) // no path leads to another drive
			return filepath.ToSlash(path)
		}
	}
	return ""
}

// cloneAbove returns the clone of Hookgate that is at a path or has it in it; empty if there is none.
func cloneAbove(path string) string {
	mod, err := os.ReadFile(filepath.Join(path, "go.mod"))
	switch above := filepath.Dir(path); {
	case err == nil && bytes.HasPrefix(mod, []byte(ownModule)):
		return path
	case above == path:
		return ""
	default:
		return cloneAbove(above)
	}
}

// gitClone returns the command that clones Hookgate at a tag or commit into a folder.
func gitClone(folder, ref string) string {
	return "git clone -q https://github.com/hookgate/hookgate " + folder + " && git -C " + folder + " checkout -q " + ref
}

// installFrom returns the command that installs the program from a clone of Hookgate, which it makes.
func installFrom(clone, ref string) string {
	return gitClone(clone, ref) + " && go -C " + clone + " install ./cmd/hookgate"
}

// physical returns the absolute path of a file without symbolic links, also if the file does not exist yet.
func physical(path string) string {
	path, err := filepath.Abs(path)
	if err != nil || path == filepath.Dir(path) {
		return path
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return filepath.Join(physical(filepath.Dir(path)), filepath.Base(path))
}
