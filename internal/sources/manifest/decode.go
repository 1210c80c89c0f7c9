// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	kubejson "sigs.k8s.io/json"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// Object is the object that one document of a manifest defines.
type Object struct {
	Place
	Name string
	// Exactly one of these is set if the document is valid, none otherwise.
	Extension *extensionconfig.Extension
	Compiled  any               // of a kind of Hookgate's own, as its Rules have it
	Labels    map[string]string // of a Namespace
	Contracts *convert.CRD      // of a CustomResourceDefinition

	// object is the object of a kind of Hookgate's own, also if it is not valid; nil if it cannot be read.
	object kinds.Object
	// closed is what an object of a kind of package kinds closes that is not valid; nil for others.
	closed *kinds.Closed
	// content is the JSON of a valid object, if the Decoder keeps it.
	content []byte
}

// Valid reports whether o has content.
func (o *Object) Valid() bool {
	return o.Extension != nil || o.Compiled != nil || o.Labels != nil || o.Contracts != nil
}

// Decoder decodes the documents of manifests.
type Decoder struct {
	hooks *catalog.Catalog
	// keepRemoved keeps ExtensionConfigs whose hooks have been removed, for a survey that judges them.
	keepRemoved bool
	// keepContent keeps the content of valid objects.
	keepContent bool
	types       *policy.Types
	rules       []kinds.Rules
}

// NewDecoder returns a Decoder for the hooks of a catalog. Each of with changes what the rules of the kinds are made
// of, which otherwise are those of a directory.
func NewDecoder(hooks *catalog.Catalog, with ...func(*allkinds.Config)) (*Decoder, error) {
	conditions, err := policy.NewCompiler()
	if err != nil {
		return nil, err
	}
	types, err := policy.NewTypes(hooks)
	if err != nil {
		return nil, err
	}
	config := allkinds.Config{Hooks: hooks, Conditions: conditions, Types: types}
	for _, change := range with {
		change(&config)
	}
	return &Decoder{hooks: hooks, types: types, rules: allkinds.Rules(config)}, nil
}

// AllRules makes a Decoder take HookRules for a cluster, too, whose params are read from params, which take places of
// places, and whose clock is now.
func AllRules(params hookrule.Params, places hookrule.Places, now func() time.Time) func(*allkinds.Config) {
	return func(c *allkinds.Config) {
		c.Rules = hookrule.NewCompiler(c.Hooks, c.Conditions, c.Types, now).WithParams(params).WithPlaces(places)
	}
}

// KeepContent makes w keep the content of valid objects, for Inventory.Valid.
func (w *Decoder) KeepContent() { w.keepContent = true }

// Types returns the types of requests, against which conditions are checked.
func (w *Decoder) Types() *policy.Types { return w.types }

// decode returns the object in a document. It is nil for documents of other kinds than those of Object and for those
// without a usable name; it lacks its content when that is wrong.
func decode(d *document, words *Decoder) (*Object, []Problem) {
	group, _, _ := strings.Cut(d.apiVersion, "/")
	if i := words.own(group, d.kind); i >= 0 {
		return decodeObject(d, &words.rules[i], words)
	}
	switch {
	case d.kind == extensionconfig.Kind &&
		(group == runtimev1.GroupVersion.Group || group == extensionconfig.HookgateGroup):
		return decodeExtensionConfig(d, words)
	case group == v1alpha1.GroupVersion.Group && d.kind != "" &&
		slices.ContainsFunc(words.rules, func(of kinds.Rules) bool { return d.kind == of.TestKind }):
		return nil, nil // which is beside its chain or rule, for "hookgate chain test" and "hookgate rule test"
	case d.apiVersion == "v1" && d.kind == "Namespace":
		return decodeNamespace(d, words)
	case group == convert.CRDKind.Group && d.kind == convert.CRDKind.Kind:
		return decodeDefinition(d)
	}
	if meant, problem := d.misspelt(group); problem != nil {
		unknown := *d
		unknown.kind = cmp.Or(meant, d.kind, "object")
		return unknown.refusedAs(words, []Problem{*problem})
	}
	var own strings.Builder
	for _, of := range slices.Backward(allkinds.Own()) {
		if !of.InCluster {
			own.WriteString(of.Name + ", ")
		}
	}
	return nil, []Problem{{
		Place: d.Place, Object: d.describe(), Warning: true,
		notOfLint: d.apiVersion == "v1" && d.kind == "Service", // whose ports Lint reads
		Err: fmt.Errorf("%s is ignored here; only ExtensionConfig of %s and %s, %sNamespace and CustomResourceDefinition "+
			"are read", d.apiVersion, runtimev1.GroupVersion.Group, extensionconfig.HookgateGroup, own.String()),
	}}
}

// misspelt returns the mistake of an object that is meant to be one of those that are read, and the kind that is meant:
// it has one of their groups and no kind of that, a name like one of them, or a group like one of theirs. meant is
// empty if it is not known.
func (d *document) misspelt(group string) (meant string, mistake *Problem) {
	groups := []string{v1alpha1.GroupVersion.Group, runtimev1.GroupVersion.Group, extensionconfig.HookgateGroup}
	like := slices.IndexFunc(groups, func(of string) bool {
		return text.EditDistance(strings.ToLower(text.Cut(group, limits.QuotedBytes)), of) <= 1
	})
	meant, named := allkinds.Named(d.kind)
	if like < 0 && !named || group == v1alpha1.GroupVersion.Group && d.kind == rollout.RecordKind {
		return "", nil
	}
	of := v1alpha1.GroupVersion.String()
	if meant == extensionconfig.Kind {
		of = runtimev1.GroupVersion.String()
		if like >= 0 && groups[like] == extensionconfig.HookgateGroup {
			of = extensionconfig.HookgateGroup + "/" + runtimev1.GroupVersion.Version
		}
	}
	err := fmt.Errorf("no such kind: %s of %s", text.Cut(cmp.Or(d.kind, "no kind"), limits.QuotedBytes),
		text.Cut(cmp.Or(d.apiVersion, "no apiVersion"), limits.QuotedBytes))
	if named {
		err = fmt.Errorf("%w: did you mean %s of %s?", err, meant, of)
	}
	p := d.problemAt("kind", err)
	return meant, &p
}

// describe returns the kind and the name.
func (d *document) describe() string {
	kind := cmp.Or(d.kind, "object")
	if d.name == "" {
		return kind
	}
	return fmt.Sprintf("%s %q", kind, d.name)
}

// problemAt returns a problem of the field at path, or of the document if path is empty.
func (d *document) problemAt(path string, err error) Problem {
	return Problem{Place: d.at(path), Object: d.describe(), Err: err}
}

// fieldProblems returns the problems that validation found.
func (d *document) fieldProblems(errs field.ErrorList) []Problem {
	problems := make([]Problem, 0, len(errs))
	for _, err := range errs {
		problems = append(problems, d.problemAt(err.Field, err))
	}
	return problems
}

// inNamespace returns a warning if the object of a kind that belongs to no namespace has one. Charts ship such
// manifests, and kubectl takes them. It might be meant to restrict the object: instead says what does.
func (d *document) inNamespace(namespace, instead string) []Problem {
	if namespace == "" {
		return nil
	}
	p := d.problemAt("metadata.namespace",
		fmt.Errorf("metadata.namespace: %s belongs to no namespace: %s", d.kind, instead))
	p.Warning, p.Effect = true, "it is ignored"
	return []Problem{p}
}

// unnamed returns what stands for the name of an object that has none of its own.
func (p *Place) unnamed() string { return fmt.Sprintf("%s:%d", filepath.Base(p.File), p.Line) }

// readable returns the JSON of what can be read of a document. What cannot be read names nothing.
func (d *document) readable() []byte {
	content, _ := d.node.Readable(limits.ManifestBytes)
	return content
}

// refusedAs returns the object without content, which still takes its name, and what it closes. An object without a
// usable name has its place as its name, and is unidentified: it may be one that its file defined before.
func (d *document) refusedAs(words *Decoder, problems []Problem) (*Object, []Problem) {
	valid := validation.IsDNS1123Label
	if d.kind == extensionpolicy.Kind || d.kind == convert.CRDKind.Kind {
		valid = validation.IsDNS1123Subdomain // nothing is named after it
	}
	name := d.name
	if len(valid(name)) > 0 {
		for i := range problems {
			problems[i].unidentified = true
		}
		if name == "" {
			name = d.unnamed()
		}
	}
	if d.kind == convert.CRDKind.Kind || d.kind == "Namespace" {
		if name != d.name || len(valid(name)) > 0 {
			return nil, problems
		}
		return &Object{Place: d.Place, Name: name}, problems
	}
	mistakes := make([]string, 0, len(problems))
	for i := range problems {
		mistakes = append(mistakes, problems[i].Err.Error())
	}
	closed := allkinds.Close(d.kind, name, d.readable(), text.Join(mistakes, "; ", limits.Problems), words.hooks)
	return &Object{Place: d.Place, Name: name, closed: &closed}, problems
}

func decodeExtensionConfig(d *document, words *Decoder) (*Object, []Problem) {
	members, problems := d.members()
	if problems != nil {
		return d.refusedAs(words, problems)
	}
	// The author of the manifest does not write the status, so an invalid status makes only its own content unusable.
	status, hasStatus := members["status"]
	delete(members, "status")

	config, problems := d.decodeVersion(members)
	if problems != nil {
		return d.refusedAs(words, problems)
	}
	d.name = config.Name // which the document may have by a merge key
	const instead = "use spec.namespaceSelector to choose the namespaces of Clusters"
	problems = d.inNamespace(config.Namespace, instead)
	config.Namespace = ""
	x, errs := extensionconfig.ConvertLocal(config)
	if len(errs) > 0 {
		return d.refusedAs(words, d.fieldProblems(errs))
	}

	if hasStatus {
		removed, found := d.decodeStatus(&x, config, status, words)
		if removed != nil {
			return d.refusedAs(words, []Problem{*removed})
		}
		problems = append(problems, found...)
	}
	if _, errs := extensionconfig.StatedVersions(config); len(errs) > 0 {
		ignored := d.fieldProblems(errs)
		for i := range ignored {
			ignored[i].Warning, ignored[i].Effect = true, "it is ignored; the versions come from policies and discovery"
		}
		problems = append(problems, ignored...)
	}
	if _, ok := config.Annotations[runtimev1.InjectCAFromSecretAnnotation]; ok {
		effect := "the system's roots are trusted; put ca.crt of the secret into spec.clientConfig.caBundle"
		if len(config.Spec.ClientConfig.CABundle) > 0 {
			effect = "spec.clientConfig.caBundle is used unchanged, and does not follow the secret"
		}
		p := d.problemAt("metadata.annotations["+runtimev1.InjectCAFromSecretAnnotation+"]",
			fmt.Errorf("annotation %s needs a cluster and is ignored here", runtimev1.InjectCAFromSecretAnnotation))
		p.Warning, p.Effect, p.notOfLint = true, effect, true
		problems = append(problems, p)
	}
	return &Object{Place: d.Place, Name: x.Name, Extension: &x}, problems
}

// decodeStatus takes over the handlers that an earlier discovery has left in the status of config, and in annotations.
// It returns a problem alone if all of them implement removed versions of hooks.
func (d *document) decodeStatus(
	x *extensionconfig.Extension, config *runtimev1.ExtensionConfig, status json.RawMessage, words *Decoder,
) (removed *Problem, problems []Problem) {
	decoded, problems := d.decodeVersion(map[string]json.RawMessage{"status": status})
	var outdated []Problem
	if problems == nil {
		config.Status = decoded.Status
		err, old := extensionconfig.HookVersions(config, words.hooks)
		if err != nil && !words.keepRemoved {
			p := d.problemAt(err.Field, err)
			return &p, nil
		}
		if err == nil {
			for _, text := range old {
				p := d.problemAt("status.handlers", errors.New(text))
				p.Warning, p.Deprecated = true, true
				outdated = append(outdated, p)
			}
		}
		handlers, skipped, errs := extensionconfig.LastKnownHandlers(config, words.hooks)
		if len(errs) == 0 {
			x.LastKnown = handlers
			for _, s := range skipped {
				p := d.problemAt("status.handlers",
					fmt.Errorf("status.handlers: handler %q is left out: %s", s.Name, s.Reason))
				p.Warning = true
				problems = append(problems, p)
			}
			return nil, append(problems, outdated...)
		}
		problems = d.fieldProblems(errs)
	}
	for i := range problems {
		problems[i].Effect = "the status is ignored; the handlers come from discovery alone"
	}
	return nil, append(problems, outdated...)
}

// decodeVersion decodes members as an ExtensionConfig in the document's version, and converts it to v1beta2.
func (d *document) decodeVersion(members map[string]json.RawMessage) (*runtimev1.ExtensionConfig, []Problem) {
	config := &runtimev1.ExtensionConfig{}
	group, version, _ := strings.Cut(d.apiVersion, "/")
	switch version {
	case runtimev1.GroupVersion.Version:
		if problems := d.decodeStrict(members, config); problems != nil {
			return nil, problems
		}
	case runtimev1alpha1.GroupVersion.Version:
		old := &runtimev1alpha1.ExtensionConfig{}
		if problems := d.decodeStrict(members, old); problems != nil {
			return nil, problems
		}
		err := runtimev1alpha1.Convert_v1alpha1_ExtensionConfig_To_v1beta2_ExtensionConfig(old, config, nil)
		if err != nil {
			return nil, []Problem{d.problemAt("", fmt.Errorf("convert to %s: %w", runtimev1.GroupVersion, err))}
		}
	default:
		return nil, []Problem{d.problemAt("apiVersion", field.NotSupported(field.NewPath("apiVersion"), d.apiVersion,
			[]string{group + "/" + runtimev1.GroupVersion.Version, group + "/" + runtimev1alpha1.GroupVersion.Version}))}
	}
	return config, nil
}

// own returns the index of the rules of a kind of Hookgate's own, or a negative number.
func (w *Decoder) own(group, kind string) int {
	if group != v1alpha1.GroupVersion.Group {
		return -1
	}
	return slices.IndexFunc(w.rules, func(r kinds.Rules) bool { return r.Name == kind })
}

// decodeObject decodes an object of a kind of Hookgate's own.
func decodeObject(d *document, rules *kinds.Rules, words *Decoder) (*Object, []Problem) {
	object := rules.New()
	if problems := d.decodeOwn(object); problems != nil {
		return d.refusedAs(words, problems)
	}
	d.name = object.GetName() // which the document may have by a merge key
	compiled, errs := rules.Compile(object)
	if len(errs) > 0 {
		o, problems := d.refusedAs(words, d.fieldProblems(errs))
		if o != nil {
			o.object = object
		}
		return o, problems
	}
	problems := d.inNamespace(object.GetNamespace(), rules.Instead)
	if rules.InCluster {
		return nil, problems
	}
	if rules.Doubts != nil {
		doubts := d.fieldProblems(rules.Doubts(compiled))
		for i := range doubts {
			doubts[i].Warning, doubts[i].Effect = true, rules.Doubtful
			doubts[i].notOfLint = true
		}
		problems = append(problems, doubts...)
	}
	return &Object{Place: d.Place, Name: object.GetName(), Compiled: compiled, object: object}, problems
}

// decodeOwn decodes an object of hookgate.dev, without its status, which is made here.
func (d *document) decodeOwn(into any) []Problem {
	if d.apiVersion != v1alpha1.GroupVersion.String() {
		return []Problem{d.problemAt("apiVersion",
			field.NotSupported(field.NewPath("apiVersion"), d.apiVersion, []string{v1alpha1.GroupVersion.String()}))}
	}
	members, problems := d.members()
	if problems != nil {
		return problems
	}
	delete(members, "status")
	return d.decodeStrict(members, into)
}

func decodeNamespace(d *document, words *Decoder) (*Object, []Problem) {
	members, problems := d.members()
	if problems != nil {
		return d.refusedAs(words, problems)
	}
	delete(members, "status")
	namespace := &corev1.Namespace{}
	if problems := d.decodeStrict(members, namespace); problems != nil {
		return d.refusedAs(words, problems)
	}
	d.name = namespace.Name
	errs := apivalidation.ValidateLabels(namespace.Labels, field.NewPath("metadata", "labels"))
	errs = append(errs, kinds.ValidateName(namespace.Name)...)
	if len(errs) > 0 {
		return d.refusedAs(words, d.fieldProblems(errs))
	}
	labels := make(map[string]string, len(namespace.Labels)+1)
	maps.Copy(labels, namespace.Labels)
	labels[corev1.LabelMetadataName] = namespace.Name
	return &Object{Place: d.Place, Name: namespace.Name, Labels: labels}, nil
}

// members returns the members of the document as JSON.
func (d *document) members() (map[string]json.RawMessage, []Problem) {
	members, err := d.node.Members(limits.ManifestBytes)
	if at, ok := errors.AsType[*yaml.Error](err); ok {
		return nil, []Problem{{
			Place: Place{File: d.File, Line: at.Line}, Object: d.describe(), Err: errors.New(at.Text),
		}}
	}
	return members, nil
}

// decodeStrict decodes members into a Kubernetes type that must know all of them, in the case in which they are
// written.
func (d *document) decodeStrict(members map[string]json.RawMessage, into any) []Problem {
	strict, err := kubejson.UnmarshalStrict(object(members), into)
	var typeErr *json.UnmarshalTypeError
	var corrupt base64.CorruptInputError
	switch {
	case errors.As(err, &typeErr):
		return []Problem{d.typeProblem(typeErr)}
	case errors.As(err, &corrupt):
		path := field.NewPath("spec", "clientConfig", "caBundle")
		return []Problem{d.problemAt(path.String(), fmt.Errorf("%s: Invalid value: must be base64 of PEM", path))}
	case err != nil:
		return []Problem{d.problemAt("", err)}
	}
	var problems []Problem
	for _, err := range strict {
		path := ""
		if fieldErr, ok := errors.AsType[kubejson.FieldError](err); ok {
			path = fieldErr.FieldPath()
		}
		problems = append(problems, d.problemAt(path, kinds.FieldError(err, into)))
	}
	return problems
}

// object returns members, which are compact, as the JSON of an object.
func object(members map[string]json.RawMessage) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(name) // a string, which always can be written
		b.Write(key)
		b.WriteByte(':')
		b.Write(members[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// memberPath returns a path of encoding/json without the embedded structs that it names. Members of Kubernetes' objects
// begin with a small letter.
func memberPath(path string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(path, "."), func(name string) bool {
		return name != "" && 'A' <= name[0] && name[0] <= 'Z'
	}), ".")
}

// typeProblem says which type a member has, and which it must have.
func (d *document) typeProblem(err *json.UnmarshalTypeError) Problem {
	path := memberPath(err.Field)
	var want string
	switch err.Type.Kind() {
	case reflect.String:
		want = "a string; put it in quotes"
		// The decoder does not name the key of a map: it belongs to the first value that is not a string.
		if node, ok := d.node.Find(splitPath(path)...); ok {
			if key, ok := node.FirstNotString(); ok {
				path += "[" + key + "]"
			}
		}
	case reflect.Int32, reflect.Int64:
		want = "a whole number"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "a list"
		if err.Type.Elem().Kind() == reflect.Uint8 {
			want = "base64 text"
		}
	default:
		want = "a mapping"
	}
	value := map[string]string{"array": "list", "object": "mapping"}[err.Value]
	if value == "" {
		value = err.Value
	}
	return d.problemAt(path, fmt.Errorf("%s: Invalid type: %s, must be %s", path, value, want))
}
