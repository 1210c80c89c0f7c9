// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patches records patches, and answers them with an error.
type patches struct {
	client.Writer
	err  error
	list []string
}

func (p *patches) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(o)
	p.list = append(p.list, client.ObjectKeyFromObject(o).String()+" "+string(data))
	return errors.Join(err, p.err)
}

// A Secret with credentials gets the label by which clusterctl move takes it along, where that is needed and of use.
func TestCredentialsGoAlong(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	owner := func(apiVersion, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "o"}}
	}
	for _, c := range []struct {
		reason  string
		labels  map[string]string
		owners  []metav1.OwnerReference
		err     error
		patched bool
		want    string
	}{
		{reason: "nothing takes it along", patched: true},
		{reason: "the user labelled it", labels: map[string]string{moveLabel: "true"}},
		{reason: "the user labelled its hierarchy", labels: map[string]string{moveHierarchyLabel: ""}},
		{reason: "the Cluster owns it", owners: owner("cluster.x-k8s.io/v1beta2", "Cluster")},
		{reason: "the control plane owns it", owners: owner("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane")},
		{
			reason: "clusterctl moves nothing whose owner stays", owners: owner("bitnami.com/v1alpha1", "SealedSecret"),
			labels: map[string]string{moveLabel: ""},
			want: "clusterctl move leaves the Secret team/creds and its owner SealedSecret o behind: before the move, create the Secret " +
				"in the other management cluster",
		},
		{
			reason: "the controllers may not", err: apierrors.NewForbidden(secrets, "creds", nil), patched: true,
			want: "clusterctl move leaves the Secret team/creds behind, because the API server does not let the controllers label " +
				"the Secret: label it yourself with clusterctl.cluster.x-k8s.io/move",
		},
		{reason: "it was deleted meanwhile", err: apierrors.NewNotFound(secrets, "creds"), patched: true},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: c.labels, OwnerReferences: c.owners}}
		writer, name := &patches{err: c.err}, types.NamespacedName{Namespace: "team", Name: "creds"}
		s := newSecrets(&objects{secret: secret}, writer, time.Now)
		for range 2 {
			if _, b, err := s.credentials(t.Context(), &name); b != nil || err != nil {
				t.Fatal(b, err)
			}
			if got, err := s.carry(t.Context(), name); got != c.want || err != nil {
				t.Errorf("%s: %q, %v; want %q", c.reason, got, err, c.want)
			}
		}
		const patch = `team/creds {"metadata":{"labels":{"clusterctl.cluster.x-k8s.io/move":""}}}`
		if patched := len(writer.list) > 0; patched != c.patched || patched && writer.list[0] != patch {
			t.Errorf("%s: the patches are %q", c.reason, writer.list)
		}
		if len(writer.list) > 1 && c.err == nil {
			t.Errorf("%s: it was labelled again", c.reason)
		}
	}
	writer := &patches{err: errors.New("the API server is down")}
	s, name := newSecrets(&objects{secret: &corev1.Secret{}}, writer, time.Now), types.NamespacedName{Name: "creds"}
	if _, b, err := s.credentials(t.Context(), &name); b != nil || err != nil {
		t.Fatal(b, err)
	}
	if _, err := s.carry(t.Context(), name); err == nil || !strings.Contains(err.Error(), "the API server is down") {
		t.Errorf("the error is %v", err)
	}
}
