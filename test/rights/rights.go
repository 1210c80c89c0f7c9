// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights compares the permissions that roles grant to a service account with the requests that it made, which
// the audit log of an API server has. Its functions are safe for concurrent use.
package rights

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// policy makes an API server record who asked for what, and nothing of the content.
const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"

// Audit makes an API server that has not started yet keep an audit log in a directory, and returns its path.
func Audit(server *envtest.APIServer, dir string) (string, error) {
	file, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		return "", err
	}
	server.Configure().Set("audit-policy-file", file).Set("audit-log-path", log)
	return log, nil
}

// Of returns a verb on a resource as a text.
func Of(group, resource, verb string) string {
	return verb + " " + schema.ParseGroupResource(resource+"."+group).String()
}

// Role is a Role or ClusterRole.
type Role struct {
	Kind, Name string
	Rules      []rbacv1.PolicyRule
}

// Binding is a RoleBinding or ClusterRoleBinding.
type Binding struct {
	Kind, Name string
	Role       rbacv1.RoleRef
	Subjects   []rbacv1.Subject
}

// Granted returns the permissions of a service account by binding, in order. It returns an error for a binding that has
// other subjects, or none.
func Granted(roles []Role, bindings []Binding, namespace, account string) (map[string][]string, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range roles {
		rules[r.Kind+" "+r.Name] = r.Rules
	}
	want := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	granted := map[string][]string{}
	for _, b := range bindings {
		if !slices.Equal(b.Subjects, want) {
			return nil, fmt.Errorf("%s %s: the subjects are %v, want %v", b.Kind, b.Name, b.Subjects, want)
		}
		key := b.Kind + " " + b.Name
		for _, rule := range rules[b.Role.Kind+" "+b.Role.Name] {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted[key] = append(granted[key], Of(group, resource, verb))
					}
				}
			}
		}
		slices.Sort(granted[key])
	}
	if len(granted) == 0 {
		return nil, errors.New("the service account may do nothing")
	}
	return granted, nil
}

// Request is a request in an audit log.
type Request struct {
	User, Verb, Group, Resource, Subresource, URI string
	// Code is the status of the answer.
	Code int
	// At is when the request came.
	At time.Time
	// Binding is the binding that allowed the request, with its kind; empty if no binding did.
	Binding string
	// Resourceless says that the request was not about objects, as in the discovery of kinds.
	Resourceless bool
}

// allowedBy matches the API server's reason to allow a request. The place of the binding is the scope of the
// permission.
var allowedBy = regexp.MustCompile(`^RBAC: allowed by ((?:Cluster)?RoleBinding) "([^"/]*)`)

// Read returns the requests in an audit log.
func Read(log string) ([]Request, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var requests []Request
	seen := map[string]bool{} // by audit ID: a watch is there when it begins and when it ends
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var event struct {
			AuditID, Verb            string
			User                     struct{ Username string }
			ObjectRef                *struct{ APIGroup, Resource, Subresource string }
			RequestURI               string
			ResponseStatus           struct{ Code int }
			RequestReceivedTimestamp time.Time
			Annotations              map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if seen[event.AuditID] {
			continue
		}
		seen[event.AuditID] = true
		r := Request{
			User: event.User.Username, Verb: event.Verb, URI: event.RequestURI, Code: event.ResponseStatus.Code,
			At: event.RequestReceivedTimestamp,
		}
		by := allowedBy.FindStringSubmatch(event.Annotations["authorization.k8s.io/reason"])
		if event.Annotations["authorization.k8s.io/decision"] == "allow" && by != nil {
			r.Binding = by[1] + " " + by[2]
		}
		if r.Resourceless = event.ObjectRef == nil; !r.Resourceless {
			r.Group, r.Resource, r.Subresource = event.ObjectRef.APIGroup, event.ObjectRef.Resource, event.ObjectRef.Subresource
		}
		requests = append(requests, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return requests, nil
}

// Used returns the requests of a user by the binding that allowed them, and those that no binding allowed, in order.
func Used(requests []Request, user string) (used map[string][]string, forbidden []string) {
	used = map[string][]string{}
	for _, r := range requests {
		switch {
		case r.User != user:
		case r.Binding == "":
			forbidden = append(forbidden, r.Verb+" "+r.URI)
		case !r.Resourceless: // what all may do is granted to no account
			resource := r.Resource
			if r.Subresource != "" {
				resource += "/" + r.Subresource
			}
			used[r.Binding] = append(used[r.Binding], Of(r.Group, resource, r.Verb))
		}
	}
	for binding := range used {
		slices.Sort(used[binding])
		used[binding] = slices.Compact(used[binding])
	}
	slices.Sort(forbidden)
	return used, slices.Compact(forbidden)
}
