# bash completion for dl-apply; make docs writes its generated parts

. "${BASH_SOURCE[0]%dl-apply*}dl-plan${BASH_SOURCE[0]##*dl-apply}"  # what they share

_dl_apply() {
    local text before prefix=
    _dltools_split
    # generated: options
    case $before in
        --release|--label|--name|--max-changes|--max-age|--hold|--beside|--contact|--lease|--host|--context|--patience) COMPREPLY=() ;;
        --policy) _dltools_reply flowcon tradl dqoes specon noop fair las slaq srtf ;;
        --deliver-dir|--state-dir) _dltools_files -d ;;
        --tell) _dltools_files -f ;;
        --format) _dltools_reply auto table jsonl ;;
        *)
            if [[ $text == -* ]]; then
                _dltools_reply --dry-run --offline --undo --stop --status --release --history --restore --install-service --remove-service --policy --label --name --max-changes --max-age --hold --force --beside --deliver-dir --tell --contact --lease --format --host --context --swarm --patience --state-dir --quiet --version --verbose --help
            else
                _dltools_files -f
            fi ;;
    esac
    # end
}
complete -o filenames -F _dl_apply dl-apply
