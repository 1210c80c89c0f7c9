// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// slowStart is how old a Pod without a container, or a Job without a Pod, is when that is a problem: volumes that
// cannot be mounted and quotas are in events alone.
const slowStart = time.Minute

// problem returns what keeps a Pod from succeeding, as its status says, and an empty text if that is nothing. It has
// the reason, names, and what else is the same each time: callers write it into conditions.
func problem(pod *corev1.Pod, now time.Time) string {
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return "the Pod failed: " + pod.Status.Reason // such as Evicted
	}
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; {
		case c.Reason == "":
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return "the Pod has no node: " + withParts(c.Reason, c.Message)
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			return "the Pod was disrupted: " + c.Reason // such as EvictionByEvictionAPI
		}
	}
	all := containers(pod)
	for _, c := range all {
		if found := problemOf(pod, c); found != "" {
			return found
		}
	}
	if len(all) > 0 && all[0].State.Waiting != nil && now.Sub(pod.CreationTimestamp.Time) > slowStart {
		return fmt.Sprintf("container %q has not started: %s", all[0].Name, all[0].State.Waiting.Reason)
	}
	return ""
}

// containers returns the status of the containers of a Pod, in the order in which they start.
func containers(pod *corev1.Pod) []*corev1.ContainerStatus {
	var all []*corev1.ContainerStatus
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// problemOf returns what keeps a container from succeeding.
func problemOf(pod *corev1.Pod, c *corev1.ContainerStatus) string {
	for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
		if t := state.Terminated; t != nil && t.ExitCode != 0 {
			return howEnded(c.Name, t)
		}
	}
	if c.State.Waiting == nil {
		return ""
	}
	reason, image := c.State.Waiting.Reason, ""
	switch reason {
	case "", "ContainerCreating", "PodInitializing", "CrashLoopBackOff":
		return ""
	case "ErrImagePull": // and the other one between two attempts
		reason = "ImagePullBackOff"
	}
	if strings.Contains(reason, "Image") {
		image = fmt.Sprintf(" of image %q", imageOf(pod, c.Name))
	}
	return fmt.Sprintf("container %q cannot start: %s", c.Name, withParts(reason+image, c.State.Waiting.Message))
}

// howEnded returns how a container has failed.
func howEnded(name string, t *corev1.ContainerStateTerminated) string {
	if t.Reason == "" || t.Reason == "Error" {
		return fmt.Sprintf("container %q ended with exit code %d", name, t.ExitCode)
	}
	message := ""
	if ofRuntime(t) { // otherwise, the container has written it
		message = t.Message
	}
	return fmt.Sprintf("container %q ended: %s", name, withParts(t.Reason, message))
}

// ofRuntime reports whether the message of a container that has ended is that of its runtime, which could not start it.
func ofRuntime(t *corev1.ContainerStateTerminated) bool {
	return t.Reason == "StartError" || t.Reason == "ContainerCannotRun"
}

func imageOf(pod *corev1.Pod, container string) string {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == container {
				return list[i].Image
			}
		}
	}
	return ""
}

// lasting finds the parts of messages of Kubernetes and of container runtimes that are the same each time. Around them
// are ids, addresses and times to wait.
var lasting = regexp.MustCompile(`(?:secrets?|configmaps?|persistentvolumeclaims?|serviceaccounts?) "[^"]+" not found` +
	`|couldn't find key \S+ in (?:Secret|ConfigMap) \S+` +
	`|container has runAsNonRoot and image (?:will run as root|has non-numeric user \([^)]*\))` +
	`|container's runAsUser breaks non-root policy` +
	`|exec: "[^"]+": [a-z ]+(?:\$PATH)?` +
	`|no command specified` +
	`|Insufficient [\w./-]*\w` +
	// Of registries:
	`|: not found\b|no such host|connection refused|\bx509\b|i/o timeout|deadline exceeded` +
	`|[Uu]nauthorized|[Ff]orbidden|authentication required|\bdenied\b|Too Many Requests|toomanyrequests`)

// withParts returns a reason with the parts of a message that last.
func withParts(reason, message string) string {
	parts := lasting.FindAllString(message, -1)
	for i := range parts {
		parts[i] = strings.TrimPrefix(parts[i], ": ")
	}
	slices.Sort(parts)
	if parts = slices.Compact(parts); len(parts) == 0 {
		return reason
	}
	return reason + ": " + strings.Join(parts, ", ")
}
