#!/bin/sh
# Writes the jar, its sources and its POM into a folder: ./build.sh FOLDER. VERSION is that of the release.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
version=$(echo "${VERSION:-}" | sed -nE 's/^v([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$/\1/p')
: "${version:=0.0.0-dev}"
proto=$(cd ../../proto && pwd)
rm -rf target/package && mkdir -p target/package/src
cp -R src/main target/package/src/
sed "s|<version>0.0.0-dev</version>|<version>$version</version>|" pom.xml > target/package/pom.xml
mvn -B -q -ntp -f target/package/pom.xml -Dhookgate.proto="$proto" package
rm -f "$folder"/hookgate-*.jar "$folder"/hookgate-*.pom
cp "target/package/target/hookgate-$version.jar" "target/package/target/hookgate-$version-sources.jar" "$folder/"
cp target/package/pom.xml "$folder/hookgate-$version.pom"
