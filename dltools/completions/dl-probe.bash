# bash completion for dl-probe; make docs writes its generated parts

. "${BASH_SOURCE[0]%dl-probe*}dl-plan${BASH_SOURCE[0]##*dl-probe}"  # what they share

_dl_probe() {
    local text before prefix=
    _dltools_split
    # generated: options
    case $before in
        -i|--interval|-c|--count|--duration|--since|--window|--label|--name|--pattern|--log|--role|--user-from|--metric|--start|--notify|--rotate|--host|--context|--deadline|--patience) COMPREPLY=() ;;
        -o|--output) _dltools_files -f ;;
        --state-dir) _dltools_files -d ;;
        --format) _dltools_reply auto table parquet arrow jsonl csv prom ;;
        *)
            if [[ $text == -* ]]; then
                _dltools_reply --interval --count --duration --since --window --label --name --pattern --log --role --user-from --metric --start --list-metrics --doctor --notify --output --rotate --host --context --swarm --deadline --patience --state-dir --format --verbose --quiet --version --help
            else
                _dltools_files -f
            fi ;;
    esac
    # end
}
complete -o filenames -F _dl_probe dl-probe
