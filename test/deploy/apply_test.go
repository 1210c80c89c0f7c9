// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// assetsVariable names the directory with kube-apiserver, etcd and kubectl.
const assetsVariable = "KUBEBUILDER_ASSETS"

// TestAPIServerAdmitsTheInstallation applies the guide's installation to a real API server with kubectl, and checks
// that the namespace, which enforces the restricted profile, admits the Pod.
func TestAPIServerAdmitsTheInstallation(t *testing.T) {
	assets := os.Getenv(assetsVariable)
	if assets == "" {
		t.Skipf("%s does not name a directory with kube-apiserver, etcd and kubectl", assetsVariable)
	}
	program(t, kustomizeVariable) // before servers are started
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		anykind.Of("cert-manager.io", "v1", "Certificate"), anykind.Of("cert-manager.io", "v1", "Issuer"),
	}, CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: process.ServerPatience},
		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience}
	if _, err := environment.Start(); err != nil {
		t.Fatalf("start API server: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop API server: %v", err)
		}
	})
	admin, err := environment.AddUser(envtest.User{Name: "operator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := admin.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, config, kubeconfig)
	apply := func(manifests []byte, flags ...string) string { return kubectlApply(config, manifests, flags...) }
	each(t, func(t *testing.T, objects []object) {
		for _, o := range objects {
			if refused := apply(o.manifest, "--force-conflicts"); refused != "" {
				t.Errorf("%s %s: %s", o.kind, o.GetName(), refused)
			}
		}
		template := one[*appsv1.Deployment](t, objects).Spec.Template
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace}, Spec: template.Spec,
		}
		if refused := apply(marshal(t, pod), "--dry-run=server"); refused != "" {
			t.Errorf("the Pod: %s", refused)
		}
		pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true)
		if refused := apply(marshal(t, pod), "--dry-run=server"); !strings.Contains(refused, "violates PodSecurity") {
			t.Errorf("the namespace takes a Pod that is not restricted: %s", refused)
		}
	})
	scaler := one[*autoscalingv2.HorizontalPodAutoscaler](t, withComponent(t, "autoscaling"))
	if refused := apply(marshal(t, scaler)); refused != "" {
		t.Errorf("autoscaling: %s", refused)
	}
}

// kubectlApply applies manifests. It returns kubectl's error and output if they are refused, or "".
func kubectlApply(kubeconfig string, manifests []byte, flags ...string) string {
	out, err := kubectl(kubeconfig, manifests, append([]string{"apply", "--server-side", "--validate=strict", "-f",
		"-"}, flags...)...)
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return ""
}

func kubectl(kubeconfig string, input []byte, args ...string) ([]byte, error) {
	cmd := exec.Command(filepath.Join(os.Getenv(assetsVariable), "kubectl"),
		append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdin = bytes.NewReader(input)
	return cmd.CombinedOutput()
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
