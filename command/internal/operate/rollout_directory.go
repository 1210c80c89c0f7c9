// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/sources/directory"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// directoryRollouts are those of a directory of manifests, with the records in the directory of a gateway's state.
type directoryRollouts struct {
	dir, state string
	reader     files.Reader

	shown []byte            // the manifest that preview has edited
	read  map[string][]byte // the records, by file
}

var _ rolloutObjects = (*directoryRollouts)(nil)

// rolloutManifest is a manifest that has an ExtensionRollout, among other objects perhaps.
type rolloutManifest struct {
	manifest.File

	own manifest.Own[v1alpha1.ExtensionRollout]
}

func (d *directoryRollouts) get(_ context.Context, name string) (*v1alpha1.ExtensionRollout, error) {
	found, err := d.find(name)
	if err != nil {
		return nil, err
	}
	return found.own.Object.DeepCopy(), nil
}

// find returns the manifest with the ExtensionRollout of a name.
func (d *directoryRollouts) find(name string) (*rolloutManifest, error) {
	manifests, err := manifest.ReadFiles(&d.reader, d.dir)
	if err != nil {
		return nil, err
	}
	var found *rolloutManifest
	var unread error // why a file was left out that may have it
	for i := range manifests {
		all, problems := manifest.DecodeOwn[v1alpha1.ExtensionRollout](&manifests[i], rollout.Kind, true)
		if len(problems) > 0 && unread == nil {
			unread = &problems[0]
		}
		for _, own := range all {
			switch {
			case own.Object.Name != name:
			case found != nil:
				return nil, fmt.Errorf("%s %q is in %s and in %s: delete one of them", rollout.Kind, name,
					found.own.At("kind"), own.At("kind"))
			default:
				found = &rolloutManifest{manifests[i], own}
			}
		}
	}
	switch {
	case found != nil:
		return found, nil
	case unread != nil:
		return nil, fmt.Errorf("there is no %s %q in the readable manifests in %s: %w", rollout.Kind, name, d.dir, unread)
	}
	return nil, fmt.Errorf("there is no %s %q in %s: to list the rollouts of the gateway, run hookgate get rollouts",
		rollout.Kind, name, d.dir)
}

// edited returns the manifest of an ExtensionRollout, and its text with a change of the spec.
func (d *directoryRollouts) edited(name string, f specChange) (*rolloutManifest, edit, error) {
	found, err := d.find(name)
	if err != nil {
		return nil, nil, err
	}
	next := found.own.Object.DeepCopy()
	if err := f(&next.Spec); err != nil {
		return nil, nil, err
	}
	changed, err := editSpec(found, &next.Spec)
	return found, changed, err
}

func (d *directoryRollouts) preview(
	w io.Writer, of *v1alpha1.ExtensionRollout, f specChange, removed []*v1alpha1.ExtensionRolloutRecord,
) error {
	found, changed, err := d.edited(of.Name, f)
	if err != nil {
		return err
	}
	d.shown = found.Content()
	if err := changed.write(w, found.Name()); err != nil {
		return err
	}
	for _, record := range removed {
		if _, err := fmt.Fprintln(w, "delete", d.file(record.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (d *directoryRollouts) update(_ context.Context, of *v1alpha1.ExtensionRollout, f specChange) error {
	found, changed, err := d.edited(of.Name, f)
	if err != nil || !changed.any() {
		return err
	}
	if !bytes.Equal(found.Content(), d.shown) {
		return fmt.Errorf("%s was changed meanwhile: nothing was done; run the command again", found.Name())
	}
	file, err := filepath.EvalSymlinks(found.Name())
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := files.Replace(file, changed.text(), info.Mode().Perm()); err != nil {
		return fmt.Errorf("%w: change the source of the file as shown above", err)
	}
	return nil
}

func (d *directoryRollouts) records(_ context.Context, f func(record *v1alpha1.ExtensionRolloutRecord)) error {
	if _, err := os.Stat(d.state); err != nil {
		return fmt.Errorf("read records: --state-dir: %w", err)
	}
	entries, err := d.reader.ReadDir(filepath.Join(d.state, directory.RecordsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // there is none before the first record
		return fmt.Errorf("read records: %w", err)
	}
	d.read = map[string][]byte{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), directory.RecordSuffix)
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		text, err := d.reader.Read(d.file(name), limits.StateBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted just now
		}
		record := &v1alpha1.ExtensionRolloutRecord{}
		if err = cmp.Or(err, json.Unmarshal(text, record)); err != nil {
			return fmt.Errorf("read record %s: %w", d.file(name), err)
		}
		record.Name = name
		d.read[name] = text
		f(record)
	}
	return nil
}

func (d *directoryRollouts) remove(_ context.Context, record *v1alpha1.ExtensionRolloutRecord) error {
	text, err := d.reader.Read(d.file(record.Name), limits.StateBytes)
	if err == nil && !bytes.Equal(text, d.read[record.Name]) {
		return errors.New("it was changed meanwhile: run the command again")
	}
	if err == nil {
		err = os.Remove(d.file(record.Name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// file returns the file of a record.
func (d *directoryRollouts) file(name string) string {
	return filepath.Join(d.state, directory.RecordsDir, name+directory.RecordSuffix)
}

func (*directoryRollouts) clusters(context.Context, func(string, *unstructured.Unstructured)) error {
	return errNoClusters
}

func (d *directoryRollouts) recordsAt() string {
	return filepath.Join(d.state, directory.RecordsDir) + " has their records"
}
