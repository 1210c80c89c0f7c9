// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/hookgate/hookgate/api/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/limits"
)

const (
	// credentialsAge is how long credentials are used before they are read again. All machines of a Cluster share them.
	credentialsAge = time.Minute
	// credentialsKept is how many Secrets with credentials are kept: of so many Clusters at the same time.
	credentialsKept = 1000
)

// secrets reads the Secrets that objects name. To watch them, the controllers would need the right to list all Secrets.
type secrets struct {
	reader client.Reader // not cached
	now    func() time.Time
	kept   *lru.Cache // of credentials, by types.NamespacedName
}

type credentials struct {
	values map[string]string
	read   time.Time
}

func newSecrets(reader client.Reader, now func() time.Time) *secrets {
	return &secrets{reader: reader, now: now, kept: lru.New(credentialsKept)}
}

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
			"bytes, more than the %d that are sent: remove what is none", name, size, limits.CredentialBytes)), nil
	}
	s.kept.Add(*name, credentials{values, s.now()})
	return values, nil, nil
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
			fmt.Sprintf("the Secret %s with the bootstrap data has no key value", name)), nil
	}
	format := string(secret.Data["format"])
	if format == "" {
		format = "cloud-config"
	}
	return data, format, nil, nil
}
