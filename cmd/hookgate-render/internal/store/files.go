// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/yaml"
)

// Read returns the objects in files, in their order, and in the files of directories, by name. "-" is in.
func Read(names []string, in io.Reader) ([]*unstructured.Unstructured, error) {
	r := reader{left: limits.ManifestsBytes}
	for _, name := range names {
		if name == "-" {
			if err := r.read("standard input", in); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.path(name); err != nil {
			return nil, err
		}
	}
	return r.objects, nil
}

// reader collects objects.
type reader struct {
	left    int64 // bytes
	objects []*unstructured.Unstructured
}

func (r *reader) path(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.file(name)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			if err := r.file(filepath.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return r.read(name, f)
}

// read adds the objects of a file.
func (r *reader) read(name string, in io.Reader) error {
	most := min(limits.ManifestBytes, r.left)
	content, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(content)) > most {
		return fmt.Errorf("read %s: want at most %d bytes in a file, and %d in all", name,
			limits.ManifestBytes, limits.ManifestsBytes)
	}
	r.left -= int64(len(content))
	nodes, problems := yaml.Parse(content)
	if len(problems) > 0 {
		return fmt.Errorf("read %s: %w", name, problems[0])
	}
	for _, node := range nodes {
		body, err := node.JSON(limits.ManifestBytes)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if strings.TrimSpace(string(body)) == "null" {
			continue
		}
		if err := r.add(body); err != nil {
			return fmt.Errorf("read %s: document at line %d: %w", name, node.Line(), err)
		}
	}
	return nil
}

// add adds an object, or the items of a list.
func (r *reader) add(body []byte) error {
	decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(body, nil, nil)
	if err != nil {
		return err
	}
	switch o := decoded.(type) {
	case *unstructured.UnstructuredList:
		for i := range o.Items {
			r.objects = append(r.objects, &o.Items[i])
		}
	case *unstructured.Unstructured:
		if o.GetName() == "" {
			return errors.New("metadata.name is missing")
		}
		r.objects = append(r.objects, o)
	}
	return nil
}
