// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"google.golang.org/protobuf/proto"

	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// Identity tells the Cluster that a request is about from others of its namespace and name.
type Identity struct {
	Namespace, Name string
	// UID is empty if the request does not have it, as one with a Machine in place of a Cluster.
	UID string
	// Created is metadata.creationTimestamp. It is empty if the request does not have it, as one about a topology.
	Created string
	// Gone means that the Cluster does not exist any more.
	Gone bool
}

// In objects, identifying members are those of metadata.
var (
	identifying = []string{"name", "namespace", "uid", "creationTimestamp"}
	inMetadata  = []string{"metadata"}
	inBuiltin   = []string{"cluster"}
)

// IdentityOf returns the Cluster that a request is about, or an empty name. It is for every call, and reads as little
// as it can: see jsonscan.First.
func IdentityOf(req proto.Message) (of Identity) {
	switch r := req.(type) {
	case aboutSubject:
		of = identityIn(r.GetSubject().GetCluster().GetRaw(), inMetadata, identifying)
		if of.Namespace = r.GetSubject().GetNamespace(); of.Name == "" {
			of.Name = r.GetSubject().GetClusterName()
		}
		return of
	case aboutTopology:
		return identityIn(variable(r, Builtin).GetRaw(), inBuiltin, identifying[:3])
	case aboutCluster:
		of = identityIn(r.GetCluster().GetRaw(), inMetadata, identifying)
		_, of.Gone = r.(*machinesv1alpha1.AfterClusterDeleteRequest)
	}
	if of.Name == "" {
		of.Namespace, of.Name = Cluster(req)
	}
	return of
}

func identityIn(object []byte, path, names []string) Identity {
	var values [4][]byte
	jsonscan.First(object, path, names, values[:len(names)])
	var texts [4]string
	for i, value := range values {
		texts[i], _ = jsonscan.String(value)
	}
	return Identity{Name: texts[0], Namespace: texts[1], UID: texts[2], Created: texts[3]}
}
