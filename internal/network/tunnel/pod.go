// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// mostPods is how many Pods are looked at. A gateway has a handful of replicas.
const mostPods = 500

// Target says which Pod is meant.
type Target struct {
	Namespace string
	// Pod is the name of the Pod. If it is empty, the oldest Pod that is ready and has the labels of Selector is meant.
	Pod      string
	Selector string
}

// find returns the Pod that is meant, and the names of the others that are ready and have the labels.
func (t Target) find(
	ctx context.Context, pods corev1client.PodInterface,
) (found *corev1.Pod, others []string, err error) {
	if t.Pod != "" {
		pod, err := pods.Get(ctx, t.Pod, metav1.GetOptions{})
		switch {
		case err != nil:
			return nil, nil, t.explain(err, "get", "pods")
		case !isReady(pod):
			return nil, nil, &Error{
				What: fmt.Sprintf("Pod %s/%s is not ready", t.Namespace, t.Pod),
				Hint: fmt.Sprintf("See \"kubectl -n %s describe pod %s\".", t.Namespace, t.Pod),
			}
		}
		return pod, nil, nil
	}
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: t.Selector, Limit: mostPods})
	if err != nil {
		return nil, nil, t.explain(err, "list", "pods")
	}
	ready := slices.DeleteFunc(slices.Clone(list.Items), func(p corev1.Pod) bool { return !isReady(&p) })
	if len(ready) > 0 {
		slices.SortFunc(ready, func(a, b corev1.Pod) int { // the oldest comes first
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
		for i := range ready[1:] {
			others = append(others, ready[i+1].Name)
		}
		return &ready[0], others, nil
	}
	if len(list.Items) == 0 {
		return nil, nil, &Error{
			What: fmt.Sprintf("namespace %s has no gateway Pod, that is, no Pod with the label %s", t.Namespace, t.Selector),
			Hint: "--gateway NAMESPACE chooses another namespace, and --context another cluster.",
		}
	}
	return nil, nil, &Error{
		What: fmt.Sprintf("namespace %s has no gateway Pod that is ready", t.Namespace),
		Hint: fmt.Sprintf("See \"kubectl -n %s get pods -l %s\"; --gateway NAMESPACE/POD names a Pod.",
			t.Namespace, t.Selector),
	}
}

func isReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Error says what is between the caller and the Pod, and what helps.
type Error struct {
	What string
	Hint string
	err  error
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.What
	}
	return e.What + "\n" + e.Hint
}

func (e *Error) Unwrap() error { return e.err }

// explain returns the error of a request to the API server.
func (t Target) explain(err error, verb, resource string) error {
	e := &Error{What: "cluster: " + err.Error(), err: err}
	switch {
	case apierrors.IsForbidden(err), strings.Contains(err.Error(), " is forbidden: "): // SPDY has no more than the text
		e.What = fmt.Sprintf("cluster: you may not %s %s in namespace %s", verb, resource, t.Namespace)
		e.Hint = "You need the Role hookgate-viewer in that namespace: get and list of pods, get and create of " +
			"pods/portforward, and create of serviceaccounts/token for the account of that name."
	case apierrors.IsUnauthorized(err):
		e.What = "cluster: the API server does not accept the credentials of the kubeconfig"
		e.Hint = "--context and --kubeconfig choose others."
	case apierrors.IsNotFound(err):
		e.Hint = fmt.Sprintf("See \"kubectl -n %s get pods\".", t.Namespace)
	case errors.Is(err, context.DeadlineExceeded):
		e.What = "cluster: the API server does not answer in time"
		e.Hint = "Is the cluster of the kubeconfig running? --context chooses another one."
	}
	return e
}
