// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/kinds"
)

// Reference names what rules read besides their requests: one object by its name, or those of a list. If Self is set,
// it is all objects of the kind, of which each request reads the one that it is about.
type Reference struct {
	Kind      schema.GroupVersionKind
	Namespace string // empty for objects of all namespaces, and for one of a cluster-scoped kind
	Name      string // of one object
	Selector  string // the labels of a list; empty for all objects
	Self      bool
}

// String names what r is to.
func (r Reference) String() string {
	switch {
	case r.Self:
		return "each " + r.Kind.Kind
	case r.Name == "":
		text := "every " + r.Kind.Kind
		if r.Namespace != "" {
			text += fmt.Sprintf(" in namespace %q", r.Namespace)
		}
		if r.Selector != "" {
			text += fmt.Sprintf(" with labels %q", r.Selector)
		}
		return text
	case r.Namespace != "":
		return fmt.Sprintf("%s %q", r.Kind.Kind, r.Namespace+"/"+r.Name)
	}
	return fmt.Sprintf("%s %q", r.Kind.Kind, r.Name)
}

// Params has the objects that References name. It is safe for concurrent use.
type Params interface {
	// Read returns the JSON of the objects of a Reference, by namespace and name, without asking the API server. If
	// Self is set, it is that of one object, which is there. The JSON must not be changed. If the objects are not
	// known, the error is a *hook.Error of kind NotReady; if there are too many or one is too large, one of kind
	// Policy.
	Read(of Reference, self types.NamespacedName) ([][]byte, error)
	// Admit calls decide with the JSON of the Clusters in the namespace of a Cluster that are past the hook
	// BeforeClusterCreate, as IsPast says or because Admit has let them pass for the rule before, and of the Cluster
	// itself, by name. If decide returns true, the Cluster is let pass when Admit returns; no other Cluster of the rule is
	// in between. It may call decide again, with other Clusters. Its errors are those of decide and of Read.
	Admit(
		ctx context.Context, rule string, of Reference, cluster types.NamespacedName,
		decide func(clusters [][]byte) (passes bool, err error),
	) error
}

// IsPast reports whether a Cluster is past the hook BeforeClusterCreate, by its JSON: the first thing that Cluster API
// makes afterwards are the objects that it refers to.
func IsPast(cluster []byte) bool {
	return textAt(cluster, "spec", "infrastructureRef", "name") != "" ||
		textAt(cluster, "spec", "controlPlaneRef", "name") != ""
}

// WithParams returns a copy of c whose rules read from p.
func (c *Compiler) WithParams(p Params) *Compiler {
	of := *c
	of.source = p
	return &of
}

// WithoutCluster returns a copy of c that refuses what only a gateway in a cluster can do.
func (c *Compiler) WithoutCluster() *Compiler {
	of := *c
	of.withoutCluster = true
	return &of
}

// param is a member of the variable params.
type param struct {
	name string
	from Reference
	list bool
	// admitted means the Clusters that Params.Admit calls decide with.
	admitted bool
}

// admittingHook is the hook of rules with a param of admitted Clusters.
const admittingHook = "BeforeClusterCreate"

var paramName = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,62}$`)

// compileParams returns the params of a rule, and notes their mistakes.
func (in *compilation) compileParams(spec *v1alpha1.HookRuleSpec, path *field.Path) []param {
	if in.withoutCluster && len(spec.Params) > 0 {
		in.errs = append(in.errs, field.Forbidden(path,
			"the gateway reads params from a cluster, and takes no rules with params from a directory"))
	}
	if len(spec.Params) > limits.RuleParams {
		in.errs = append(in.errs, field.TooMany(path, len(spec.Params), limits.RuleParams))
		return nil
	}
	var all []param
	for i := range spec.Params {
		from, at := &spec.Params[i], path.Index(i)
		if !paramName.MatchString(from.Name) {
			in.errs = append(in.errs, field.Invalid(at.Child("name"), field.OmitValueType{},
				"must begin with a lower-case letter, and have at most 63 letters and digits"))
			continue
		}
		if slices.ContainsFunc(all, func(p param) bool { return p.name == from.Name }) {
			in.errs = append(in.errs, field.Duplicate(at.Child("name"), from.Name))
			continue
		}
		all = append(all, param{
			name: from.Name, from: in.reference(spec, from, at), list: from.Objects != nil || from.Admitted,
			admitted: from.Admitted,
		})
	}
	return all
}

// reference returns what a param reads, or notes its mistakes.
func (in *compilation) reference(
	spec *v1alpha1.HookRuleSpec, from *v1alpha1.HookRuleParam, path *field.Path,
) Reference {
	switch {
	case from.Admitted && !from.Self && from.Object == nil && from.Objects == nil:
		if in.hook.Hook != admittingHook {
			in.errs = append(in.errs, field.Forbidden(path.Child("admitted"),
				"a Cluster shows whether it is past "+admittingHook+", but not whether it is past another hook"))
			return Reference{}
		}
		if spec.Action == v1alpha1.HookRuleAudit {
			in.errs = append(in.errs, field.Forbidden(path.Child("admitted"), "a rule that only audits admits no Clusters"))
		}
		of, _ := in.selfKind(spec)
		return Reference{Kind: of, Self: true}
	case from.Admitted:
	case from.Self && from.Object == nil && from.Objects == nil:
		of, ok := in.selfKind(spec)
		if !ok {
			in.errs = append(in.errs, field.Forbidden(path.Child("self"), in.hook.Hook+" is about no object"))
		}
		return Reference{Kind: of, Self: true}
	case !from.Self && from.Object != nil && from.Objects == nil:
		at := path.Child("object")
		if from.Object.Name == "" {
			in.errs = append(in.errs, field.Required(at.Child("name"), "must be the name of an object"))
		}
		return Reference{
			Kind: in.kindOf(from.Object.HookRuleKind, at), Namespace: from.Object.Namespace, Name: from.Object.Name,
		}
	case !from.Self && from.Object == nil && from.Objects != nil:
		at := path.Child("objects")
		selector, errs := kinds.ConvertSelector(from.Objects.Selector, at.Child("selector"))
		in.errs = append(in.errs, errs...)
		of := Reference{Kind: in.kindOf(from.Objects.HookRuleKind, at), Namespace: from.Objects.Namespace}
		if selector != nil {
			of.Selector = selector.String()
		}
		return of
	}
	in.errs = append(in.errs, field.Required(path, "must have one of self, admitted, object and objects"))
	return Reference{}
}

func (in *compilation) kindOf(of v1alpha1.HookRuleKind, path *field.Path) schema.GroupVersionKind {
	version, err := schema.ParseGroupVersion(of.APIVersion)
	switch {
	case err != nil || version.Version == "":
		in.errs = append(in.errs, field.Invalid(path.Child("apiVersion"), field.OmitValueType{},
			"must be a version such as v1, or a group and a version such as apps/v1"))
	case of.Kind == "":
		in.errs = append(in.errs, field.Required(path.Child("kind"), "must be the name of a kind"))
	case version.Group == "" && of.Kind == "Secret":
		in.errs = append(in.errs, field.Forbidden(path.Child("kind"),
			"rules cannot read Secrets, because what they read can appear in messages"))
	}
	return version.WithKind(of.Kind)
}

// selfKind returns the kind of the object that requests of the hook are about, and reports whether there is one.
func (in *compilation) selfKind(spec *v1alpha1.HookRuleSpec) (schema.GroupVersionKind, bool) {
	version := cmp.Or(string(spec.ClusterAPIVersion), string(v1alpha1.ClusterAPIVersionV1Beta2))
	kind, _, _ := subject.Object(in.hook.Request.New().Interface())
	return schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group, Version: version, Kind: kind}, kind != ""
}

// variables returns the variables of expressions, with the params of the rule.
func (in *compilation) variables(names []string) []string {
	for i := range in.params {
		names = append(names, policy.ParamsVariable+"."+in.params[i].name)
	}
	return names
}

// References returns what the rule reads besides its requests, and what ends its records.
func (r *Rule) References() []Reference {
	var all []Reference
	for i := range r.params {
		if !slices.Contains(all, r.params[i].from) {
			all = append(all, r.params[i].from)
		}
	}
	if of := ClusterReference(); (r.TakesPlaces() || r.Admits()) && !slices.Contains(all, of) {
		all = append(all, of)
	}
	return all
}

// admitting returns what the rule reads of admitted Clusters, and reports whether it does.
func (r *Rule) admitting() (Reference, bool) {
	for i := range r.params {
		if r.params[i].admitted {
			return r.params[i].from, true
		}
	}
	return Reference{}, false
}

// admitted answers by the Clusters that are past the hook.
func (r *Rule) admitted(
	ctx context.Context, of Reference, request proto.Message, guard policy.Guard,
) (answer proto.Message, err error) {
	if r.source == nil {
		return nil, r.noParams()
	}
	_, namespace, name := subject.Object(request)
	cluster := types.NamespacedName{Namespace: namespace, Name: name}
	err = r.source.Admit(ctx, r.name, of, cluster, func(clusters [][]byte) (passes bool, err error) {
		if answer, err = r.decide(ctx, request, guard, clusters); err != nil {
			return false, err
		}
		said, ok := answer.(lifecycleResponse)
		return ok && said.GetStatus() == hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS &&
			said.GetRetryAfterSeconds() == 0, nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (r *Rule) noParams() error {
	return hook.Errorf(hook.NotReady, "HookRule %q has params, which this gateway does not read", r.name)
}

// readParams returns the value of the variable params for a request. clusters are the admitted ones.
func (r *Rule) readParams(request proto.Message, guard policy.Guard, clusters [][]byte) ([]byte, error) {
	if r.source == nil {
		return nil, r.noParams()
	}
	self := types.NamespacedName{}
	_, self.Namespace, self.Name = subject.Object(request)
	values, size := make([][][]byte, len(r.params)), len("{}")
	for i := range r.params {
		p := &r.params[i]
		var err error
		if p.admitted {
			values[i] = clusters
		} else if values[i], err = r.source.Read(p.from, self); err != nil {
			return nil, err
		}
		size += len(p.name) + len(`"":[],null`)
		for _, value := range values[i] {
			size += len(value) + 1
		}
	}
	if size > limits.RuleParamsBytes {
		return nil, hook.Errorf(hook.Policy, "HookRule %q: its params have more than %d bytes", r.name,
			limits.RuleParamsBytes)
	}
	if guard.Reserve != nil {
		if err := guard.Reserve(int64(size)); err != nil {
			return nil, err
		}
	}
	b := append(make([]byte, 0, size), '{')
	for i := range r.params {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%q:", r.params[i].name)
		b = r.params[i].append(b, values[i])
	}
	return append(b, '}'), nil
}

func (p *param) append(b []byte, values [][]byte) []byte {
	switch {
	case !p.list && len(values) == 0:
		return append(b, "null"...)
	case !p.list:
		return append(b, values[0]...)
	}
	b = append(b, '[')
	for i, value := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, value...)
	}
	return append(b, ']')
}
