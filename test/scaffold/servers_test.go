// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"archive/zip"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// servers are the registries of a rehearsal, empty at first. All other packages come from the public ones.
type servers struct {
	t   *testing.T
	url string
	// pypi is the folder whose files the workflow sends to PyPI, maven has what Central has accepted, and gpg the key.
	pypi, maven, gpg string
	asked            int // how often Central was asked for a status
	npm              *npm
	crates           crates
}

// crates is what crates.io got: the archive, and the members of its manifest that it shows.
type crates struct {
	archive  []byte
	manifest struct {
		Name                                                    string
		Version                                                 string `json:"vers"`
		License, Description, Repository, Documentation, Readme string
		Keywords, Categories                                    []string
	}
	// index is the line of the index.
	index []byte
}

// serve starts the registries, and makes the workflow publish to them.
func serve(t *testing.T, w *workflow) *servers {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s := &servers{
		t: t, url: server.URL, npm: &npm{url: server.URL + "/npm/"}, pypi: filepath.Join(w.place, "pypi"),
		maven: filepath.Join(w.place, "maven"), gpg: filepath.Join(w.place, "gpg"),
	}
	mux.HandleFunc("GET /pypi/simple/{name}/", s.simple)
	mux.HandleFunc("GET /pypi/files/{name}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(s.pypi, r.PathValue("name")))
	})
	mux.HandleFunc("PUT /npm/", s.publishNPM)
	mux.Handle("GET /npm/", s.npm)
	mux.HandleFunc("POST /api/v1/publisher/upload", s.upload)
	mux.HandleFunc("POST /api/v1/publisher/status", func(w http.ResponseWriter, _ *http.Request) {
		s.asked++
		_ = json.NewEncoder(w).Encode(map[string]string{"deploymentState": []string{"PUBLISHING", "PUBLISHED"}[min(s.asked, 2)-1]})
	})
	mux.Handle("GET /maven/", http.StripPrefix("/maven/", http.FileServer(http.Dir(s.maven))))
	mux.HandleFunc("PUT /crates/api/v1/crates/new", s.publishCrate)
	mux.HandleFunc("GET /crates/index/", s.crateIndex)
	mux.HandleFunc("GET /crates/dl/{name}/{version}/download", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") != s.crates.manifest.Name {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(s.crates.archive)
	})

	key := w.user.run(t, "export GNUPGHOME="+s.gpg+" && mkdir -m 700 $GNUPGHOME && gpg --batch --quiet --passphrase secret "+
		"--quick-gen-key 'A Rehearsal <a@example.com>' ed25519 sign never 2>/dev/null && "+
		"gpg --batch --quiet --pinentry-mode loopback --passphrase secret --armor --export-secret-keys; gpgconf --kill all")
	w.given = map[string]string{
		"CENTRAL_USERNAME": "user", "CENTRAL_PASSWORD": "password", "GPG_KEY": key, "GPG_PASSPHRASE": "secret", "CARGO_REGISTRY_TOKEN": "token",
	}
	w.clients = []string{
		npmSettings(t, w.place, s.url), "CENTRAL_URL=" + s.url, "CARGO_REGISTRY_DEFAULT=rehearsal",
		"CARGO_REGISTRIES_REHEARSAL_INDEX=sparse+" + s.url + "/crates/index/",
	}
	return s
}

// clients returns the variables with which a user's clients ask these registries, and writes the settings files that
// some of them need into the folder. The caches that could have an earlier build of a package are new ones there.
func (s *servers) clients(t *testing.T, folder string) []string {
	t.Helper()
	for file, text := range map[string]string{
		".cargo/config.toml": "[registries.rehearsal]\nindex = \"sparse+" + s.url + "/crates/index/\"\n",
		"settings.xml": "<settings><profiles><profile><id>rehearsal</id><repositories><repository><id>rehearsal</id><url>" + s.url +
			"/maven/</url></repository></repositories></profile></profiles><activeProfiles><activeProfile>rehearsal</activeProfile>" +
			"</activeProfiles></settings>\n",
	} {
		name := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{
		"PIP_EXTRA_INDEX_URL=" + s.url + "/pypi/simple", npmSettings(t, folder, s.url), "npm_config_cache=" + filepath.Join(folder, ".npm"),
		"CARGO_HOME=" + filepath.Join(folder, ".cargo"),
	}
}

// simple serves the index of Python packages of PEP 503.
func (s *servers) simple(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("name") != "hookgate" {
		http.NotFound(w, r)
		return
	}
	files, err := os.ReadDir(s.pypi)
	if err != nil {
		s.t.Error(err)
	}
	for _, file := range files {
		name := html.EscapeString(file.Name())
		_, _ = fmt.Fprintf(w, "<a href=\"/pypi/files/%s#sha256=%x\">%s</a>\n", name, sha256.Sum256(read(s.t, s.pypi, file.Name())), name)
	}
}

// publishNPM accepts what `npm publish` sends: the document of the package, with the archive as its attachment.
func (s *servers) publishNPM(w http.ResponseWriter, r *http.Request) {
	var document map[string]any
	if err := json.NewDecoder(r.Body).Decode(&document); err != nil || r.Header.Get("Authorization") != "Bearer token" {
		http.Error(w, fmt.Sprintf("%v, %q", err, r.Header.Get("Authorization")), http.StatusBadRequest)
		return
	}
	attachments := document["_attachments"].(map[string]any)
	delete(document, "_attachments")
	for _, attachment := range attachments {
		archive, err := base64.StdEncoding.DecodeString(attachment.(map[string]any)["data"].(string))
		if err != nil || len(attachments) != 1 {
			http.Error(w, fmt.Sprintf("%d attachments: %v", len(attachments), err), http.StatusBadRequest)
			return
		}
		s.npm.add(archive, document)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte("{}"))
}

// upload accepts a bundle as Central's portal does: each file needs its sums, and the signature of a known key.
func (s *servers) upload(w http.ResponseWriter, r *http.Request) {
	token := "Bearer " + base64.StdEncoding.EncodeToString([]byte("user:password"))
	file, _, err := r.FormFile("bundle")
	if err == nil && (r.Header.Get("Authorization") != token || r.FormValue("publishingType") != "AUTOMATIC") {
		err = fmt.Errorf("token or type: %v", r.Form)
	}
	if err == nil {
		err = s.accept(file)
	}
	if err != nil {
		s.t.Errorf("Maven Central refuses the bundle: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte("28570f16-da32-4c14-bd2e-c1acc0782365"))
}

func (s *servers) accept(file io.Reader) error {
	bundle, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	files, err := zip.NewReader(bytes.NewReader(bundle), int64(len(bundle)))
	if err != nil {
		return err
	}
	if err := os.CopyFS(s.maven, files); err != nil {
		return err
	}
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		ext := path.Ext(name)
		if err != nil || entry.IsDir() || ext == ".asc" || ext == ".md5" || ext == ".sha1" {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		for ext, sum := range map[string]string{
			".md5": fmt.Sprintf("%x", md5.Sum(content)), ".sha1": fmt.Sprintf("%x", sha1.Sum(content)),
		} {
			if written, err := fs.ReadFile(files, name+ext); err != nil || strings.TrimSpace(string(written)) != sum {
				return fmt.Errorf("%s%s is %q, want %s: %w", name, ext, written, sum, err)
			}
		}
		u := &user{s.maven, append(os.Environ(), "GNUPGHOME="+s.gpg)}
		if out, err := u.command(s.t, "gpg --batch --verify "+name+".asc "+name).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	})
}

// publishCrate accepts what `cargo publish` sends: JSON and the crate, each after its length.
func (s *servers) publishCrate(w http.ResponseWriter, r *http.Request) {
	var parts [2][]byte
	for i := range parts {
		var size uint32
		if err := binary.Read(r.Body, binary.LittleEndian, &size); err != nil || size > 10<<20 || r.Header.Get("Authorization") != "token" {
			http.Error(w, fmt.Sprintf("%v, %d bytes, %q", err, size, r.Header.Get("Authorization")), http.StatusBadRequest)
			return
		}
		parts[i] = make([]byte, size)
		if _, err := io.ReadFull(r.Body, parts[i]); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	var manifest struct {
		Deps     []map[string]any    `json:"deps"`
		Features map[string][]string `json:"features"`
	}
	for _, into := range []any{&s.crates.manifest, &manifest} {
		if err := json.Unmarshal(parts[0], into); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	for _, dep := range manifest.Deps {
		dep["req"] = dep["version_req"]
	}
	index, err := json.Marshal(map[string]any{
		"name": s.crates.manifest.Name, "vers": s.crates.manifest.Version, "deps": manifest.Deps, "features": manifest.Features,
		"cksum": fmt.Sprintf("%x", sha256.Sum256(parts[1])), "yanked": false,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.crates.archive, s.crates.index = parts[1], index
	_, _ = w.Write([]byte("{}"))
}

func (s *servers) crateIndex(w http.ResponseWriter, r *http.Request) {
	switch name := strings.TrimPrefix(r.URL.Path, "/crates/index/"); {
	case name == "config.json":
		_ = json.NewEncoder(w).Encode(map[string]string{"dl": s.url + "/crates/dl", "api": s.url + "/crates"})
	case name != "ho/ok/hookgate" || s.crates.index == nil:
		http.NotFound(w, r)
	default:
		_, _ = w.Write(s.crates.index)
	}
}
