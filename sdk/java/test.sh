#!/bin/sh
# Tests the package, and then an empty project outside of the repository that depends on the files of a folder:
# ./test.sh FOLDER. HOOKGATE_BIN is the program that checks extensions.
set -eu
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")"
mvn -B -q -ntp test

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp -R src/test/hello/* "$place/"
pom=$(ls "$folder"/hookgate-*.pom)
version=$(basename "${pom#"$folder"/hookgate-}" .pom)
# A local repository of its own, which has the files under test and no other build of them.
repository="$place/repository"
mkdir -p "$repository"
[ ! -d "$HOME/.m2/repository" ] || cp -R "$HOME/.m2/repository/." "$repository/"
rm -rf "$repository/dev/hookgate"
mvn -B -q -ntp -Dmaven.repo.local="$repository" org.apache.maven.plugins:maven-install-plugin:3.1.4:install-file \
  -Dfile="$folder/hookgate-$version.jar" -DpomFile="$pom"
mvn -B -q -ntp -Dmaven.repo.local="$repository" -f "$place/pom.xml" -Dhookgate.version="$version" test
