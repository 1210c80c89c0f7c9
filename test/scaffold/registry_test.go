// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/hookgate/hookgate"
	// moduleVersion is the version of the modules in the registry, for every query: a tag, or a commit.
	moduleVersion = "v0.0.0-20010101000000-000000000000"
	npmPackage    = "@hookgate/sdk"
)

// registry serves what a release publishes: the modules for authors by Go's protocol of proxies, and the package of npm.
// Pip reads a folder instead. It returns the variables with which the clients ask it before the registries that
// they ask anyway. What it adds to the settings of npm is in a file in place, because a shell drops a variable with the
// name of such a setting.
func registry(t *testing.T, repository, packages, place string) []string {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	serveModules(t, mux, repository)
	serveNPM(t, mux, server.URL, packages)
	return []string{
		// What the usual folder has already is not downloaded again.
		"GOPROXY=" + server.URL + "/go,file://" + output(t, "go", "env", "GOMODCACHE") + "/cache/download," +
			output(t, "go", "env", "GOPROXY"),
		"GONOSUMDB=" + module,
		"PIP_FIND_LINKS=" + strings.TrimSpace(packages+" "+os.Getenv("PIP_FIND_LINKS")),
		npmSettings(t, place, server.URL),
	}
}

// npmSettings returns the variable with which npm has its usual settings, but asks the registry at url for the packages
// of this repository.
func npmSettings(t *testing.T, place, url string) string {
	t.Helper()
	file := filepath.Join(place, "npmrc")
	settings, err := os.ReadFile(output(t, "npm", "config", "get", "userconfig"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	settings = fmt.Appendf(settings, "\n@hookgate:registry=%s/npm/\n%s/npm/:_authToken=token\n", url, strings.TrimPrefix(url, "http:"))
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	return "npm_config_userconfig=" + file
}

// output returns what a program prints, without the end of the line.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// serveModules serves the modules for authors of extensions, as they are in the working tree.
func serveModules(t *testing.T, mux *http.ServeMux, repository string) {
	t.Helper()
	files := workingTree(t, repository)
	for _, dir := range []string{"gen/go", "sdk"} {
		name := module + "/" + dir
		var archive bytes.Buffer
		w := zip.NewWriter(&archive)
		for _, file := range files {
			inside, ok := strings.CutPrefix(file, dir+"/")
			if !ok {
				continue
			}
			out, err := w.Create(name + "@" + moduleVersion + "/" + inside)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := out.Write(read(t, repository, file)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		mod := read(t, repository, dir, "go.mod")
		mux.HandleFunc("/go/"+name+"/@v/", func(w http.ResponseWriter, r *http.Request) {
			switch path.Ext(r.URL.Path) {
			case ".mod":
				_, _ = w.Write(mod)
			case ".zip":
				_, _ = w.Write(archive.Bytes())
			default:
				_ = json.NewEncoder(w).Encode(map[string]string{"Version": moduleVersion})
			}
		})
	}
}

// workingTree returns the paths of the files that git knows or would add, and that are there.
func workingTree(t *testing.T, repository string) []string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = repository
	out, err := git.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := os.Lstat(filepath.Join(repository, name))
		return os.IsNotExist(err)
	})
}

// read returns the content of a file.
func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// npm is a registry of one package.
type npm struct {
	url     string
	archive []byte
	// document is what was published, without the archive; the registry answers with it.
	document map[string]any
}

// serveNPM serves the one package of npm in the folder.
func serveNPM(t *testing.T, mux *http.ServeMux, url, packages string) {
	t.Helper()
	archive := read(t, only(t, packages, "hookgate-sdk-*.tgz"))
	var manifest map[string]any
	if err := json.Unmarshal(packageJSON(t, archive), &manifest); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(archive)
	version := manifest["version"].(string)
	manifest["dist"] = map[string]any{"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
	n := &npm{url: url + "/npm/"}
	n.add(archive, map[string]any{
		"name": npmPackage, "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: manifest},
	})
	mux.Handle("/npm/", n)
}

// add makes the registry serve a package, and enters the address of the archive into its one version.
func (n *npm) add(archive []byte, document map[string]any) {
	for _, manifest := range document["versions"].(map[string]any) {
		manifest.(map[string]any)["dist"].(map[string]any)["tarball"] = n.url + "sdk.tgz"
	}
	n.archive, n.document = archive, document
}

func (n *npm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case n.document != nil && r.URL.Path == "/npm/"+npmPackage:
		_ = json.NewEncoder(w).Encode(n.document)
	case n.document != nil && r.URL.Path == "/npm/sdk.tgz":
		_, _ = w.Write(n.archive)
	default:
		http.NotFound(w, r)
	}
}

// packageJSON returns the package.json of a package of npm.
func packageJSON(t *testing.T, archive []byte) []byte {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			t.Fatalf("package.json: %v", err)
		}
		if header.Name != "package/package.json" {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
}

// only returns the one file of the folder that the pattern matches.
func only(t *testing.T, folder, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s has %q of %s, want one: %v", folder, files, pattern, err)
	}
	return files[0]
}

// outside returns the environment of this process without what leads into the repository, and with these variables.
func outside(repository string, with ...string) []string {
	without := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.Contains(variable, repository) || strings.HasPrefix(variable, "HOOKGATE_")
	})
	return append(without, with...)
}
