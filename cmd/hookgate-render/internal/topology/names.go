// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"regexp"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// evened stands where Cluster API puts five random characters into the names of new objects.
const evened = "xxxxx"

// random is the random part of a template of names.
var random = regexp.MustCompile(`\{\{-?\s*\.random\s*-?\}\}`)

// evenNaming makes the names of a ClusterClass the same each time.
func evenNaming(class *clusterv1.ClusterClass) {
	even := func(template *string, standard string) {
		if *template == "" {
			*template = standard
		}
		*template = random.ReplaceAllString(*template, evened)
	}
	even(&class.Spec.Infrastructure.Naming.Template, "{{ .cluster.name }}-{{ .random }}")
	even(&class.Spec.ControlPlane.Naming.Template, "{{ .cluster.name }}-{{ .random }}")
	for i := range class.Spec.Workers.MachineDeployments {
		even(&class.Spec.Workers.MachineDeployments[i].Naming.Template,
			"{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}")
	}
	for i := range class.Spec.Workers.MachinePools {
		even(&class.Spec.Workers.MachinePools[i].Naming.Template,
			"{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}")
	}
}

// evenNames replaces the random ends of names that Cluster API gives to new templates, wherever they are in the
// objects. The templates of names do not reach them, nor names that are cut because they are too long.
func evenNames(objects []Object) {
	var replacements []string
	for i := range objects {
		o := &objects[i]
		name := o.GetName()
		if o.isNew && (o.generated || len(name) == 63) && !strings.HasSuffix(name, evened) {
			replacements = append(replacements, name, name[:len(name)-len(evened)]+evened)
		}
	}
	if len(replacements) == 0 {
		return
	}
	replacer := strings.NewReplacer(replacements...)
	for i := range objects {
		objects[i].Object, _ = replaced(objects[i].Object, replacer).(map[string]any)
	}
}

// replaced returns a value in which the strings are replaced, at all levels.
func replaced(v any, r *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return r.Replace(v)
	case []any:
		for i := range v {
			v[i] = replaced(v[i], r)
		}
	case map[string]any:
		for k := range v {
			v[k] = replaced(v[k], r)
		}
	}
	return v
}
