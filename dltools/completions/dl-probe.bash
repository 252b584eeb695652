# bash completion for dl-probe; make docs writes its generated parts

. "${BASH_SOURCE[0]%dl-probe*}dl-plan${BASH_SOURCE[0]##*dl-probe}"  # what they share

_dl_probe() {
    local text before prefix=
    _dltools_split
    # generated: options
    case $before in
        -i|--interval|-c|--count|--duration|--since|--window|--label|--name|--pattern|--log|--role|--user-from|--start|--notify|--rotate|--deadline|--host|--context|--patience) COMPREPLY=() ;;
        -o|--output) _dltools_files -f ;;
        --format) _dltools_reply auto table parquet arrow jsonl csv prom ;;
        --state-dir) _dltools_files -d ;;
        *)
            if [[ $text == -* ]]; then
                _dltools_reply --interval --count --duration --since --window --label --name --pattern --log --role --user-from --start --list-metrics --doctor --notify --output --rotate --deadline --format --host --context --swarm --patience --state-dir --quiet --version --verbose --help
            else
                _dltools_files -f
            fi ;;
    esac
    # end
}
complete -o filenames -F _dl_probe dl-probe
