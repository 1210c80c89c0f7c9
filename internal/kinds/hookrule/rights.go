// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// rightsName is the name of the roles of Rights.
const rightsName = "hookgate-rule-params"

// Rights returns the roles and bindings that a gateway needs to read what rules name: a ClusterRole for what is in no
// namespace or in all of them, and a Role in each namespace that rules name. They allow no more than rules say: of one
// object, its name. resources are the resources of the kinds.
func Rights(
	references []Reference, resources map[schema.GroupVersionKind]schema.GroupResource, account types.NamespacedName,
) []any {
	byNamespace := map[string][]rbacv1.PolicyRule{}
	for _, of := range references {
		resource := resources[of.Kind]
		rule := rbacv1.PolicyRule{
			APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: []string{"list", "watch"},
		}
		if of.Name != "" {
			rule.ResourceNames = []string{of.Name}
		}
		byNamespace[of.Namespace] = append(byNamespace[of.Namespace], rule)
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	version := rbacv1.SchemeGroupVersion.String()
	var all []any
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		rules := slices.CompactFunc(slices.SortedFunc(slices.Values(byNamespace[namespace]), compareRights),
			func(a, b rbacv1.PolicyRule) bool { return compareRights(a, b) == 0 })
		named := metav1.ObjectMeta{Namespace: namespace, Name: rightsName}
		kind := "ClusterRole"
		if namespace != "" {
			kind = "Role"
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: rightsName}
		if namespace == "" {
			all = append(all,
				&rbacv1.ClusterRole{
					TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}, ObjectMeta: named, Rules: rules,
				},
				&rbacv1.ClusterRoleBinding{
					TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"},
					ObjectMeta: named, RoleRef: ref, Subjects: subjects,
				})
			continue
		}
		all = append(all,
			&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}, ObjectMeta: named, Rules: rules},
			&rbacv1.RoleBinding{
				TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"},
				ObjectMeta: named, RoleRef: ref, Subjects: subjects,
			})
	}
	return all
}

func compareRights(a, b rbacv1.PolicyRule) int {
	return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources),
		slices.Compare(a.ResourceNames, b.ResourceNames))
}
