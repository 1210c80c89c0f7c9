// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Exclusion says what excludes a handler, in a word, and the reason with its values.
type Exclusion struct{ By, Message string }

// Exclusion returns the text of a verdict that excludes a handler of an ExtensionConfig, and nil for others.
func (m *Matcher) Exclusion(v Verdict, registration string, s labels.Selector) *Exclusion {
	p := v.Policy
	switch v.By {
	case ByNamespace:
		of, _ := m.labelsOf(v.namespace)
		return &Exclusion{"namespaceSelector", fmt.Sprintf(
			"namespaceSelector of %s (%s) does not match namespace %q with the labels %s",
			registration, cut(s.String()), cut(v.namespace), labelText(of))}
	case ByUnknownNamespace:
		return &Exclusion{"namespaceSelector", fmt.Sprintf(
			"namespaceSelector of %s (%s) depends on labels of namespace %q, which are not known",
			registration, cut(s.String()), cut(v.namespace))}
	case ByObject:
		return &Exclusion{"objectSelector", fmt.Sprintf("objectSelector of %s (%s) does not match the labels %s",
			p, cut(p.ObjectSelector.String()), labelText(m.labels))}
	case ByCluster:
		return &Exclusion{"objectSelector", fmt.Sprintf(
			"objectSelector of %s (%s) does not match the labels of Cluster %q, %s",
			p, cut(p.ObjectSelector.String()), v.cluster, labelText(v.labels))}
	case ByUnknownCluster:
		return &Exclusion{"objectSelector", text.Cut(v.unknown.Error(), limits.PolicyMessageBytes)}
	case ByCondition:
		return &Exclusion{"matchCondition", fmt.Sprintf("match condition %q of %s is false: %s",
			cut(v.condition.Name), p, cut(strings.Join(strings.Fields(v.condition.Expression), " ")))}
	case ByHooks:
		return &Exclusion{"hooks", fmt.Sprintf("spec.hooks of %s does not list the hook", p)}
	case ByUndiscovered:
		return &Exclusion{"onUndiscovered", "its handlers are not known yet, and calls are answered without them"}
	}
	return nil
}

func cut(s string) string { return text.Cut(s, limits.QuotedBytes) }

// labelText returns labels in order, as selectors write them.
func labelText(l labels.Set) string {
	if len(l) == 0 {
		return "(none)"
	}
	return cut(l.String())
}
