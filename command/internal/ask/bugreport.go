// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/seeing/bugreport"
)

const (
	// reportPods is the number of Pods of a gateway, and reportObjects that of the objects of a kind, in a report.
	reportPods    = 10
	reportObjects = 2000
	// reportLog is the size of the log of each Pod.
	reportLog = 4 << 20
)

// bugReportOptions are the flags of hookgate bug-report.
type bugReportOptions struct {
	target.StatusOptions
	file string
}

// NewBugReportCommand returns the command hookgate bug-report.
func NewBugReportCommand() *cobra.Command {
	var o bugReportOptions
	cmd := &cobra.Command{
		Use:   "bug-report",
		Short: "Collect what a maintainer needs to know about a gateway",
		Long: "Write a ZIP file with the state of a gateway: versions, status, handlers, metrics and readiness, and\n" +
			"for a gateway in a cluster also its configuration, its log, ExtensionConfigs, policies, chains, rules\n" +
			"and rollouts. The file contains names of Clusters, namespaces and hosts.\n\n" +
			"Secrets are removed: tokens, keys, credentials in URLs and headers, the values of settings,\n" +
			"and the values in which two versions of a rollout differ. Secrets in other forms cannot be\n" +
			"recognized: look through the files that the command lists before you share the report.",
		Example: "  hookgate bug-report\n  hookgate bug-report --context management -f report.zip",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.Ask(cmd, func(c *target.StatusClient) error { return o.write(cmd, c) })
		},
	}
	f := o.AddFlags(cmd)
	f.StringVarP(&o.file, "file", "f", "",
		"file to write, which must not exist yet; default: hookgate-bug-report-TIME.zip")
	return cmd
}

func (o *bugReportOptions) write(cmd *cobra.Command, c *target.StatusClient) (err error) {
	now := time.Now().UTC()
	path := cmp.Or(o.file, "hookgate-bug-report-"+now.Format("20060102-150405")+".zip")
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = os.Remove(path)
		}
	}()
	var report bugreport.Archive
	report.Secret(c.Token)
	if err := o.collect(cmd.Context(), &report, c); err != nil && o.Tunnel == nil {
		return err
	}
	if o.Tunnel != nil {
		if err := o.collectCluster(cmd.Context(), &report); err != nil {
			return err
		}
	}
	if err := cmd.Context().Err(); err != nil {
		return fmt.Errorf("write report: %w", context.Cause(cmd.Context()))
	}
	entries, err := report.Write(out, now)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return cmdline.NewScreen(cmd.OutOrStdout()).Write(false, func(w io.Writer) error {
		return printEntries(w, path, entries)
	})
}

func printEntries(w io.Writer, path string, entries []bugreport.Entry) error {
	_, _ = fmt.Fprintf(w, "%s has:\n", path)
	t := table.New(w)
	t.Row("FILE", "BYTES", "NOTE")
	for _, e := range entries {
		t.Row(e.Name, strconv.Itoa(e.Size), e.Note)
	}
	return t.Flush()
}

// collect adds what the gateway says. The error is why it says nothing at all.
func (o *bugReportOptions) collect(ctx context.Context, report *bugreport.Archive, c *target.StatusClient) error {
	report.AddJSON("command.json", map[string]any{
		"build": cmdline.CurrentBuild(), "gateway": c.Name(), "address": c.Base.Redacted(),
	})
	g, _, failed := c.Get(ctx, "")
	if failed != nil {
		report.Missing("status.json", failed)
	} else {
		withoutValues(g.Rollouts)
		report.AddJSON("status.json", g)
		report.AddJSON("handlers.json", printers.Registered(g))
		o.collectExtensions(ctx, report, c, g)
	}
	for name, path := range map[string]string{"metrics.txt": "/metrics", "readyz.txt": "/readyz"} {
		code, body, err := c.Fetch(ctx, path, url.Values{"verbose": {""}}, bugreport.MaxFile+1)
		switch {
		case err != nil:
			report.Missing(name, err)
		case code != http.StatusOK && path != "/readyz": // which says why it is not ready
			report.Missing(name, c.Refusal(code, body, ""))
		default:
			report.Add(name, string(body))
			failed = nil
		}
	}
	return failed
}

// withoutValues removes the values that differ between the versions of rollouts, which are those of templates.
func withoutValues(rollouts []status.Rollout) {
	clean := func(c *status.RolloutCluster) {
		for i := range c.Differences {
			c.Differences[i].Stable, c.Differences[i].Candidate = bugreport.Removed, bugreport.Removed
		}
	}
	for i := range rollouts {
		if rollouts[i].Variables != nil {
			clean(rollouts[i].Variables)
		}
		for j := range rollouts[i].Clusters {
			clean(&rollouts[i].Clusters[j])
		}
	}
}

// collectExtensions adds all that is known of each extension, which is more than the status of all has.
func (o *bugReportOptions) collectExtensions(
	ctx context.Context, report *bugreport.Archive, c *target.StatusClient, g *status.Gateway,
) {
	const most = 100
	var extensions []status.Extension
	size := 0 // of the statuses, of which a report has no more than a file
	for i := range g.Extensions[:min(most, len(g.Extensions))] {
		one, body, err := c.Get(ctx, g.Extensions[i].Name)
		if size += len(body); size > bugreport.MaxFile {
			break
		}
		if err == nil && len(one.Extensions) == 1 {
			extensions = append(extensions, one.Extensions[0])
		}
	}
	report.AddJSON("extensions.json", extensions)
}

// collectCluster adds what the API server says about the gateway. The tokens of the kubeconfig are secrets.
func (o *bugReportOptions) collectCluster(ctx context.Context, report *bugreport.Archive) error {
	config, err := o.Gateway.Kube.Load()
	if err != nil {
		return err
	}
	report.Secret(config.BearerToken, config.Password, string(config.KeyData))
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := o.collectPods(ctx, report, config); err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for name, kind := range map[string]schema.GroupVersionResource{
		"extensionconfigs." + controllers.ClusterAPIGroup: {
			Group: controllers.ClusterAPIGroup, Version: runtimev1.GroupVersion.Version, Resource: "extensionconfigs",
		},
		"extensionconfigs." + controllers.HookgateGroup: {
			Group: controllers.HookgateGroup, Version: runtimev1.GroupVersion.Version, Resource: "extensionconfigs",
		},
		"extensionrollouts": v1alpha1.GroupVersion.WithResource("extensionrollouts"), // not their records: these have values
		"extensionpolicies": v1alpha1.GroupVersion.WithResource("extensionpolicies"),
		"handlerchains":     v1alpha1.GroupVersion.WithResource("handlerchains"),
		"hookrules":         v1alpha1.GroupVersion.WithResource("hookrules"),
	} {
		list, err := objects.Resource(kind).List(ctx, metav1.ListOptions{Limit: reportObjects})
		if err != nil {
			report.Missing("cluster/"+name+".json", err)
			continue
		}
		report.AddObjects("cluster/"+name+".json", list.Items)
	}
	return nil
}

// collectPods adds the configuration and the log of each Pod of the gateway.
func (o *bugReportOptions) collectPods(ctx context.Context, report *bugreport.Archive, config *rest.Config) error {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return err
	}
	pods := core.Pods(o.Tunnel.Pod().Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: target.GatewayLabel, Limit: reportPods})
	if err != nil {
		report.Missing("pods.json", err)
		list = &corev1.PodList{Items: []corev1.Pod{*o.Tunnel.Pod()}}
	}
	for i := range list.Items {
		pod := &list.Items[i]
		report.AddPod("pods/"+pod.Name+".json", pod)
		for j := range pod.Spec.Containers {
			c := pod.Spec.Containers[j].Name
			name := "pods/" + pod.Name + "-" + c + ".log"
			lines, err := logOf(ctx, pods, pod.Name, &corev1.PodLogOptions{Container: c})
			if err != nil {
				report.Missing(name, err)
				continue
			}
			report.Add(name, lines)
		}
	}
	return nil
}

// logOf returns the last lines of a log, and no more than reportLog.
func logOf(ctx context.Context, pods corev1client.PodInterface, pod string, o *corev1.PodLogOptions) (string, error) {
	o.TailLines = new(int64(20_000))
	stream, err := pods.GetLogs(pod, o).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	lines, err := io.ReadAll(io.LimitReader(stream, reportLog))
	return string(lines), err
}
