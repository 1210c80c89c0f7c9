// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// credentialsAge is how long credentials are used before they are read again. All machines of a Cluster share them.
	credentialsAge = limits.CredentialAge
	// credentialsKept is how many Secrets with credentials are kept: of so many Clusters at the same time.
	credentialsKept = limits.Credentials
)

// The labels of objects that clusterctl move takes along although no Cluster owns them.
const (
	moveLabel          = "clusterctl.cluster.x-k8s.io/move"
	moveHierarchyLabel = "clusterctl.cluster.x-k8s.io/move-hierarchy"
)

// secrets reads the Secrets that objects name. To watch them, the controllers would need the right to list all Secrets.
type secrets struct {
	reader client.Reader // not cached
	writer client.Writer
	now    func() time.Time
	kept   *lru.Cache // of credentials, by types.NamespacedName
}

type credentials struct {
	values map[string]string
	read   time.Time
	// owner names an owner of the Secret that does not belong to Cluster API, and so stays where it is.
	owner string
	// moves reports whether clusterctl move takes the Secret along, by a label or by its owners.
	moves bool
}

func newSecrets(reader client.Reader, writer client.Writer, now func() time.Time) *secrets {
	return &secrets{reader: reader, writer: writer, now: now, kept: lru.New(credentialsKept)}
}

// forget makes the next call read a Secret again.
func (s *secrets) forget(name types.NamespacedName) { s.kept.Remove(name) }

// credentials returns the content of a Secret; nil without one. Callers must not change the map.
func (s *secrets) credentials(ctx context.Context, name *types.NamespacedName) (map[string]string, *block, error) {
	if name == nil {
		return nil, nil, nil
	}
	if known, ok := s.kept.Get(*name); ok {
		if c, ok := known.(credentials); ok && s.now().Sub(c.read) < credentialsAge {
			return c.values, nil, nil
		}
	}
	secret := &corev1.Secret{}
	err := s.reader.Get(ctx, *name, secret)
	if apierrors.IsNotFound(err) {
		return nil, stops(infrav1.CredentialsNotFoundReason,
			fmt.Sprintf("the Secret %s with the credentials does not exist: create it", name)), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	size := 0
	values := make(map[string]string, len(secret.Data))
	for key, value := range secret.Data {
		if !utf8.Valid(value) {
			return nil, stops(infrav1.CredentialsNotFoundReason,
				fmt.Sprintf("the Secret %s with the credentials has a value that is not text: %s", name, key)), nil
		}
		values[key] = string(value)
		size += len(key) + len(value)
	}
	if size > limits.CredentialBytes {
		return nil, stops(infrav1.CredentialsNotFoundReason, fmt.Sprintf("the Secret %s with the credentials has %d "+
			"bytes, but at most %d are sent: remove what is not a credential", name, size, limits.CredentialBytes)), nil
	}
	c := credentials{values: values, read: s.now()}
	c.moves, c.owner = movesWithCluster(secret)
	s.kept.Add(*name, c)
	return values, nil, nil
}

// movesWithCluster reports whether clusterctl move takes a Secret along with a Cluster. It never does if an owner
// stays, which is named then.
func movesWithCluster(secret metav1.Object) (moves bool, stays string) {
	owners := secret.GetOwnerReferences()
	for _, o := range owners {
		group, _, _ := strings.Cut(o.APIVersion, "/")
		if group != infrav1.GroupVersion.Group && group != clusterv1.GroupVersion.Group &&
			!strings.HasSuffix(group, "."+clusterv1.GroupVersion.Group) {
			return false, o.Kind + " " + o.Name
		}
	}
	_, labelled := secret.GetLabels()[moveLabel]
	_, hierarchy := secret.GetLabels()[moveHierarchyLabel]
	return labelled || hierarchy || len(owners) > 0, ""
}

// carry makes clusterctl move take along a Secret whose credentials have just been read, by a label: it may be shared
// by several Clusters, and must not be deleted with them, as what they own is. It returns why the Secret stays behind,
// and an empty text if it does not.
func (s *secrets) carry(ctx context.Context, name types.NamespacedName) (string, error) {
	known, _ := s.kept.Get(name)
	c, ok := known.(credentials)
	if !ok || c.moves {
		return "", nil
	}
	if c.owner != "" {
		return staysWith(name, c.owner), nil
	}
	stays, err := s.mark(ctx, name, []byte(`{"metadata":{"labels":{"`+moveLabel+`":""}}}`),
		"label the Secret: label it yourself with "+moveLabel)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil // the next read says so
	case err != nil || stays != "":
		return stays, err
	}
	c.moves = true
	s.kept.Add(name, c)
	return "", nil
}

// mark patches a Secret, so that clusterctl move takes it along. It returns why the Secret stays behind if the API
// server refuses that, with what it does not let the controllers do and what to do instead.
func (s *secrets) mark(
	ctx context.Context, name types.NamespacedName, patch []byte, refused string,
) (stays string, err error) {
	err = s.writer.Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}},
		client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Sprintf("clusterctl move leaves the Secret %s behind, because the API server does not let the "+
			"controllers %s", name, refused), nil
	case err != nil:
		return "", fmt.Errorf("mark Secret %s: %w", name, err)
	}
	return "", nil
}

// staysWith says that a Secret stays behind, because an owner of it does.
func staysWith(name types.NamespacedName, owner string) string {
	return fmt.Sprintf("clusterctl move leaves the Secret %s and its owner %s behind: before the move, create the "+
		"Secret in the other management cluster", name, owner)
}

// bootstrap returns the bootstrap data in a Secret, and its format.
func (s *secrets) bootstrap(ctx context.Context, namespace, name string) ([]byte, string, *block, error) {
	secret := &corev1.Secret{}
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, "", waits(infrav1.WaitingForBootstrapDataReason,
			fmt.Sprintf("the Secret %s with the bootstrap data does not exist", name)), nil
	}
	if err != nil {
		return nil, "", nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	data := secret.Data["value"]
	if len(data) == 0 {
		return nil, "", waits(infrav1.WaitingForBootstrapDataReason,
			fmt.Sprintf("the Secret %s with the bootstrap data has no key \"value\"", name)), nil
	}
	format := string(secret.Data["format"])
	if format == "" {
		format = "cloud-config"
	}
	return data, format, nil, nil
}
